import type { Registry } from 'prom-client';
import { type HandleDependencies, handleMessage } from '../bridge/handle.ts';
import { bridgeMetrics } from '../bridge/metrics.ts';
import { trackOutage } from '../bridge/outage.ts';
import { sqsQueue } from '../bridge/queue/sqs.ts';
import { runWorker } from '../bridge/queue/worker.ts';
import type { OperatorParts } from '../cli/operator.ts';
import { systemClock } from '../kube/clock.ts';
import type { OperatorSettings } from '../settings/operator.ts';

export interface BridgeParts extends Omit<HandleDependencies, 'metrics' | 'clock' | 'random'> {
  /** Undefined: only applied AgentRuns are worked on. */
  readonly settings: OperatorSettings['queue'];
  /** Where the API server is asked whether it answers again. */
  readonly namespace: string;
  readonly registry: Registry;
}

/** What reads the queue; `close` ends its connections. */
export interface JoinedBridge {
  readonly loops: OperatorParts['loops'];
  close(): void;
}

/** Joins the queue to what is done with its messages. Nothing is received before the loops run. */
export function joinBridge({ settings, namespace, registry, ...parts }: BridgeParts): JoinedBridge {
  if (settings === undefined) return { loops: [], close: () => undefined };
  const { url, region, endpoint } = settings;
  const queue = sqsQueue({ queueUrl: url, region, ...(endpoint === undefined ? {} : { endpoint }) });
  const dependencies = {
    ...parts,
    clock: systemClock,
    random: Math.random,
    metrics: bridgeMetrics(registry),
  };
  const worker = {
    name: 'bridge',
    run: (signal: AbortSignal) =>
      runWorker(
        {
          ...dependencies,
          queue,
          handle: (message, limit) => handleMessage(dependencies, message, limit),
          outage: trackOutage({ ...dependencies, namespace }),
          ready: () => parts.workflows() !== undefined,
        },
        signal,
      ),
  };
  return { loops: [worker], close: () => queue.close() };
}

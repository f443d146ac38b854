import type { Registry } from 'prom-client';
import { type HandleDependencies, handleMessage } from '../bridge/handle.ts';
import { bridgeMetrics } from '../bridge/metrics.ts';
import { trackOutage } from '../bridge/outage.ts';
import type { Outbox } from '../bridge/port.ts';
import { queueHealth } from '../bridge/queue/health.ts';
import { queueMetrics } from '../bridge/queue/metrics.ts';
import { runRouter } from '../bridge/queue/router.ts';
import { sqsQueue } from '../bridge/queue/sqs.ts';
import { runWorker } from '../bridge/queue/worker.ts';
import type { OperatorParts } from '../cli/operator.ts';
import { AwsRequests } from '../http/aws-requests.ts';
import type { Proxies } from '../http/proxies.ts';
import { systemClock } from '../kube/clock.ts';
import type { OperatorSettings } from '../settings/operator.ts';

export interface BridgeParts extends Omit<HandleDependencies, 'metrics' | 'clock' | 'random'> {
  /** Undefined: only applied AgentRuns are worked on. */
  readonly settings: OperatorSettings['queue'];
  /** Where the API server is asked whether it answers again. */
  readonly namespace: string;
  readonly registry: Registry;
  readonly proxies: Proxies;
}

/** What reads the queues; `close` ends their connections. */
export interface JoinedBridge {
  readonly loops: OperatorParts['loops'];
  /** Runs on one replica at a time, since two would not keep the order of a discussion. */
  readonly leaderLoops: OperatorParts['loops'];
  readonly checks: OperatorParts['checks'];
  close(): void;
}

/** Joins the queues to what is done with their messages. Nothing is received before the loops run. */
export function joinBridge({ settings, namespace, registry, proxies, ...parts }: BridgeParts): JoinedBridge {
  if (settings === undefined) return { loops: [], leaderLoops: [], checks: [], close: () => undefined };
  const { url, fifoUrl, region, endpoint } = settings;
  const open = (queueUrl: string) =>
    sqsQueue({
      ...{ queueUrl, region },
      ...(endpoint === undefined ? {} : { endpoint }),
      requests: (deadlines) => new AwsRequests(proxies, deadlines),
    });
  const first = open(url);
  const fifo = fifoUrl === undefined ? undefined : open(fifoUrl);
  const metrics = { ...bridgeMetrics(registry), ...queueMetrics(registry) };
  const dependencies = { ...parts, clock: systemClock, random: Math.random, metrics };
  const health = { worker: queueHealth(systemClock), router: queueHealth(systemClock) };
  const worker = {
    name: 'bridge',
    run: (signal: AbortSignal) =>
      runWorker(
        {
          ...dependencies,
          queue: fifo ?? first,
          handle: (message, limit) => handleMessage(dependencies, message, limit),
          outage: trackOutage({ ...dependencies, namespace }),
          ready: () => parts.workflows() !== undefined,
          health: health.worker,
        },
        signal,
      ),
  };
  const router = (to: Outbox) => ({
    name: 'router',
    run: (signal: AbortSignal) =>
      runRouter({ ...dependencies, ingress: first, fifo: to, health: health.router }, signal),
  });
  return {
    loops: [worker],
    leaderLoops: fifo === undefined ? [] : [router(fifo)],
    checks: [
      { name: 'queue', problem: () => health.worker.problem() },
      ...(fifo === undefined ? [] : [{ name: 'router', problem: () => health.router.problem() }]),
    ],
    close() {
      first.close();
      fifo?.close();
    },
  };
}

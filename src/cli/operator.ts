import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Controller } from '../kube/controller.ts';
import type { Informer } from '../kube/informer.ts';
import type { EventRecorder } from '../kube/port.ts';
import { type HealthServer, type Readiness, serveHealth } from './health.ts';

/** A watch that the API server has not answered for so long makes the replica unready. */
const STALE_AFTER_MS = 60_000;

/** What main.ts joined, in the order in which it starts. */
export interface OperatorParts {
  readonly log: Logger;
  readonly registry: Registry;
  readonly healthPort: number;
  readonly events: EventRecorder;
  readonly informers: readonly Informer[];
  readonly controllers: readonly Controller[];
  /** The bridge; undefined without a queue. Resolves when it has handed back what it could not finish. */
  readonly bridge: ((signal: AbortSignal) => Promise<void>) | undefined;
  /** Ends this process's agent loops; their runs go on elsewhere from their checkpoints. */
  stopLoops(): Promise<void>;
  /** Aborted when this replica has lost its Lease: it must not act any more. */
  readonly leaseLost: AbortSignal;
  /** Gives the Lease back and closes connections. */
  close(): Promise<void>;
}

/**
 * Runs the operator until `signal` is aborted or its Lease is lost. Stops in the order in which nothing is
 * lost: no new messages, then the loops, then the controllers, then the Lease.
 */
export async function runOperator(parts: OperatorParts, signal: AbortSignal): Promise<void> {
  const { log, informers, controllers, bridge } = parts;
  const ending = AbortSignal.any([signal, parts.leaseLost]);
  let synced = false;
  const health = await serveHealth({
    port: parts.healthPort,
    registry: parts.registry,
    checks: [
      { name: 'caches', problem: () => (synced ? undefined : 'not synced yet') },
      { name: 'lease', problem: () => (parts.leaseLost.aborted ? 'lost' : undefined) },
      ...informers.map(freshness),
    ],
  });
  log.info({ port: health.port }, 'health, readiness and metrics are served');
  let bridging: Promise<void> | undefined;
  try {
    for (const informer of informers) informer.start();
    await Promise.all(controllers.map((controller) => controller.start()));
    synced = true;
    bridging = bridge?.(ending);
    log.info(
      { controllers: controllers.map(({ name }) => name), bridge: bridge !== undefined },
      'operator is at work',
    );
    await aborted(ending);
    log.info(parts.leaseLost.aborted ? 'the Lease was lost: stopping' : 'asked to stop: stopping');
  } finally {
    await shutDown(parts, health, bridging);
  }
}

async function shutDown(
  parts: OperatorParts,
  health: HealthServer,
  bridging: Promise<void> | undefined,
): Promise<void> {
  await bridging;
  await parts.stopLoops();
  await Promise.all(parts.controllers.map((controller) => controller.stop()));
  await Promise.all(parts.informers.map((informer) => informer.stop()));
  await parts.events.flush();
  await parts.close();
  await health.close();
}

const freshness = (informer: Informer): Readiness => ({
  name: informer.kind.plural,
  problem: () => {
    const age = informer.stalenessMs();
    return age <= STALE_AFTER_MS
      ? undefined
      : `no answer from the API server for ${Math.round(age / 1000)} s`;
  },
});

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

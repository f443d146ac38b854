import { setTimeout } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { HummingbirdOperator } from '../kube/operator.ts';
import type { EventRecorder } from '../kube/port.ts';
import { type HealthServer, type Readiness, serveHealth } from './health.ts';

/** A watch that the API server has not answered for so long makes the replica unready. */
const STALE_AFTER_MS = 60_000;
/** For the last Events; an API server that is away would take seconds for each of them. */
const FLUSH_MS = 3_000;

/** What main.ts joined, in the order in which it starts. */
export interface OperatorParts {
  readonly log: Logger;
  readonly registry: Registry;
  readonly healthPort: number;
  readonly events: EventRecorder;
  /** Informers and the controllers that were made with them. */
  readonly operator: HummingbirdOperator;
  /** Loops beside the controllers: the bridge, what the leader does. Each ends when its signal is aborted, and never rejects. */
  readonly loops: readonly { readonly name: string; run(signal: AbortSignal): Promise<void> }[];
  /** What else must be well for the replica to be ready. */
  readonly checks: readonly Readiness[];
  /** Ends this process's agent loops, and no other begins; their runs go on elsewhere from their checkpoints. */
  stopAgents(): Promise<void>;
  /** Aborted when this replica has lost its Lease: it must not act any more. */
  readonly leaseLost: AbortSignal;
  /** Gives the Lease back and closes connections. */
  close(): Promise<void>;
}

/** Pauses between tries to join again, while the API server is away: from the first up to the last, then that. */
const REJOIN_PAUSES_MS = [500, 1_000, 2_000, 5_000, 10_000];

/**
 * Runs the operator until `signal` is aborted. A lost Lease (an API server that was away for too long) ends
 * everything that acted under it; then the process joins anew, as another incarnation, instead of ending: when
 * all replicas ended together, they would come back only after kubelet's growing back-off. Rejects when it cannot
 * join the first time: then something is wrong that waiting does not mend.
 */
export async function keepOperating(
  join: () => Promise<OperatorParts>,
  signal: AbortSignal,
  pausesMs: readonly number[] = REJOIN_PAUSES_MS,
): Promise<void> {
  let parts: OperatorParts | undefined = await join();
  while (parts !== undefined) {
    const { log } = parts;
    if ((await runOperator(parts, signal)) === 'Stopped') return;
    parts = await joinAgain(join, log, signal, pausesMs);
  }
}

async function joinAgain(
  join: () => Promise<OperatorParts>,
  log: Logger,
  signal: AbortSignal,
  pausesMs: readonly number[],
): Promise<OperatorParts | undefined> {
  for (let failures = 0; !signal.aborted; failures += 1) {
    try {
      return await join();
    } catch (error) {
      const pauseMs = pausesMs[Math.min(failures, pausesMs.length - 1)] ?? 0;
      const problem = error instanceof Error ? error.message : String(error);
      log.warn({ failures: failures + 1, pauseMs, problem }, 'cannot join again yet');
      await setTimeout(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }
  return undefined;
}

/**
 * Runs the operator until `signal` is aborted or its Lease is lost. Everything that acts stops at once and
 * together; the Lease is given back only when nothing of this process acts any more, since others go on from then.
 */
export async function runOperator(
  parts: OperatorParts,
  signal: AbortSignal,
): Promise<'Stopped' | 'LeaseLost'> {
  const { log, operator, loops, leaseLost } = parts;
  const ending = AbortSignal.any([signal, leaseLost]);
  let running: readonly Promise<void>[] = [];
  let lost = false;
  let health: HealthServer | undefined;
  try {
    health = await serveHealth({
      port: parts.healthPort,
      registry: parts.registry,
      checks: [
        { name: 'caches', problem: () => (operator.hasSynced ? undefined : 'not synced yet') },
        { name: 'api-server', problem: () => staleness(operator.stalenessMs()) },
        { name: 'lease', problem: () => (leaseLost.aborted ? 'lost' : undefined) },
        ...parts.checks,
      ],
    });
    log.info({ port: health.port }, 'health, readiness and metrics are served');
    // An API server that does not answer must not keep a replica from stopping.
    await Promise.race([operator.start(), aborted(ending)]);
    if (!ending.aborted) {
      running = loops.map((loop) => loop.run(ending));
      log.info({ loops: loops.map(({ name }) => name) }, 'operator is at work');
      await aborted(ending);
    }
    log.info(leaseLost.aborted ? 'the Lease was lost: stopping' : 'asked to stop: stopping');
  } finally {
    // Asked before `close`, which ends the Lease in good order.
    lost = leaseLost.aborted;
    await Promise.all([...running, parts.stopAgents(), operator.stop()]);
    await Promise.race([parts.events.flush(), setTimeout(FLUSH_MS)]);
    await parts.close();
    await health?.close();
  }
  return lost && !signal.aborted ? 'LeaseLost' : 'Stopped';
}

const staleness = (ms: number): string | undefined =>
  ms <= STALE_AFTER_MS ? undefined : `no answer for ${Math.round(ms / 1000)} s`;

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

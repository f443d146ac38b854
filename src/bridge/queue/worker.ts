import { backoffMs, type Clock, type Random, sleep } from '../../kube/clock.ts';
import { errorFields, type Logger } from '../../kube/log.ts';
import type { BridgeMetrics } from '../metrics.ts';
import type { Outage } from '../outage.ts';
import type { Handled, Inbox, QueueMessage } from '../port.ts';
import type { QueueHealth } from './health.ts';
import { type Lane, lanesOf } from './lanes.ts';
import type { QueueMetrics } from './metrics.ts';
import { createSettler } from './settle.ts';

export interface WorkerDependencies {
  readonly queue: Inbox;
  /** Makes the outcome of one message durable, and may be repeated. Throws when it could not. */
  readonly handle: (message: QueueMessage, signal: AbortSignal) => Promise<Handled>;
  readonly outage: Outage;
  /** While this is false nothing is received: deciding without what it waits for would drop events. */
  readonly ready: () => boolean;
  readonly metrics: Pick<BridgeMetrics, 'message'> & Pick<QueueMetrics, 'extension'>;
  readonly health: QueueHealth;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: Random;
  /** Messages in hand at once, default 10 (one receive's worth). */
  readonly concurrency?: number;
  /** For one message, default 2 minutes: enough for a GitLab that asks to wait for one. */
  readonly messageTimeoutMs?: number;
  /** Longest wait of one receive, default 20 s, which is SQS's longest: fewest empty answers. */
  readonly waitSeconds?: number;
  /** How long a message is hidden from others at a time, default 30 s; extended while it is in hand. */
  readonly visibilitySeconds?: number;
  /** What is in hand at shutdown may take so long; then it is handed back. Default 10 s. */
  readonly graceMs?: number;
}

/**
 * Hands queue messages to `handle` until `signal` is aborted, and resolves when nothing is in hand any more.
 * A message is deleted when its outcome is durable; one that cannot be read or done stays for the queue's
 * dead-letter policy and holds up no other, except that messages of one group are handled one after the other, and
 * those behind one that failed go back. Never rejects.
 */
export async function runWorker(dependencies: WorkerDependencies, signal: AbortSignal): Promise<void> {
  const { queue, outage, handle, logger, clock, random, metrics, health } = dependencies;
  const { concurrency = 10, messageTimeoutMs = 120_000, graceMs = 10_000 } = dependencies;
  const { waitSeconds = 20, visibilitySeconds = 30 } = dependencies;
  const hardStop = new AbortController();
  const lanes = new Map<string, Promise<void>>();
  let inHand = 0;
  let freed = Promise.withResolvers<void>();
  let receiving = new AbortController();
  signal.addEventListener('abort', () => freed.resolve(), { once: true });
  const settler = createSettler({
    ...{ queue, handle, metrics, logger, clock, messageTimeoutMs, visibilitySeconds },
    stopping: signal,
    hardStop: hardStop.signal,
    onFailure(error) {
      const concernsAll = outage.report(error);
      // What the poll that is under way brings could not be done either.
      if (concernsAll) receiving.abort(error);
      return concernsAll;
    },
  });

  const startLane = ({ key, messages }: Lane): void => {
    const held = messages.map((message) => settler.hold(message));
    inHand += held.length;
    // Of the same group there is something in hand only when it could not be kept hidden.
    const before = lanes.get(key);
    const lane = (async () => {
      await before;
      let failed = false;
      for (const one of held) {
        if (failed || signal.aborted) await settler.handBack(one);
        else failed = !(await settler.settle(one));
        inHand -= 1;
        freed.resolve();
      }
    })().finally(() => {
      if (lanes.get(key) === lane) lanes.delete(key);
    });
    lanes.set(key, lane);
  };

  let failures = 0;
  while (!signal.aborted) {
    await untilReady(dependencies, signal);
    await outage.over(signal);
    if (inHand >= concurrency) {
      freed = Promise.withResolvers<void>();
      await freed.promise;
      continue;
    }
    receiving = new AbortController();
    try {
      const messages = await queue.receive({
        max: concurrency - inHand,
        waitSeconds,
        visibilitySeconds,
        signal: AbortSignal.any([signal, receiving.signal]),
      });
      failures = 0;
      health.reached();
      for (const lane of lanesOf(messages)) startLane(lane);
    } catch (error) {
      if (signal.aborted) break;
      if (receiving.signal.aborted) continue;
      failures++;
      health.failed(errorFields(error).error);
      logger.warn({ failures, ...errorFields(error) }, 'nothing received from the queue; trying again');
      await sleep(clock, backoffMs(failures - 1, 500, 30_000, random), signal);
    }
  }

  logger.info({ inHand }, 'the bridge stops: nothing more is received');
  const cancel = clock.after(graceMs, () =>
    hardStop.abort(new Error(`still in hand ${graceMs} ms after the stop`)),
  );
  await Promise.all(lanes.values());
  cancel();
}

async function untilReady({ ready, clock }: WorkerDependencies, signal: AbortSignal): Promise<void> {
  while (!ready() && !signal.aborted) await sleep(clock, 100, signal);
}

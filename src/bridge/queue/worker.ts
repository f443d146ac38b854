import { backoffMs, type Clock, type Random, sleep } from '../../kube/clock.ts';
import { errorFields, type Logger } from '../../kube/log.ts';
import type { BridgeMetrics } from '../metrics.ts';
import type { Outage } from '../outage.ts';
import type { Handled, Queue, QueueMessage } from '../port.ts';

export interface WorkerDependencies {
  readonly queue: Queue;
  /** Makes the outcome of one message durable, and may be repeated. Throws when it could not. */
  readonly handle: (message: QueueMessage, signal: AbortSignal) => Promise<Handled>;
  readonly outage: Outage;
  /** While this is false nothing is received: deciding without what it waits for would drop events. */
  readonly ready: () => boolean;
  readonly metrics: Pick<BridgeMetrics, 'message'>;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: Random;
  /** Messages in hand at once, default 10 (one receive's worth). */
  readonly concurrency?: number;
  /** For one message; must be below the queue's visibility timeout (30 s by default). Default 20 s. */
  readonly messageTimeoutMs?: number;
  /** Longest wait of one receive, default 20 s, which is SQS's longest: fewest empty answers. */
  readonly waitSeconds?: number;
  /** What is in hand at shutdown may take so long; then it is handed back. Default 10 s. */
  readonly graceMs?: number;
}

/**
 * Hands queue messages to `handle` until `signal` is aborted, and resolves when nothing is in hand any more.
 * A message is deleted when its outcome is durable; one that cannot be read or done stays for the queue's
 * dead-letter policy and holds up no other. Never rejects.
 */
export async function runWorker(dependencies: WorkerDependencies, signal: AbortSignal): Promise<void> {
  const {
    queue,
    outage,
    logger,
    clock,
    random,
    concurrency = 10,
    messageTimeoutMs = 20_000,
    graceMs = 10_000,
    waitSeconds = 20,
  } = dependencies;
  const hardStop = new AbortController();
  const inHand = new Set<Promise<void>>();
  let receiving = new AbortController();

  const take = (message: QueueMessage) => {
    const limit = AbortSignal.any([hardStop.signal, AbortSignal.timeout(messageTimeoutMs)]);
    const work = settle(message, limit).finally(() => inHand.delete(work));
    inHand.add(work);
  };

  /** Handles one message to the end; never rejects. */
  const settle = async (message: QueueMessage, limit: AbortSignal): Promise<void> => {
    const fields = { messageId: message.id, receiveCount: message.receiveCount };
    try {
      const handled = await dependencies.handle(message, limit);
      if (handled.kind === 'Undecodable') {
        dependencies.metrics.message('undecodable');
        logger.warn(
          { ...fields, problem: handled.message },
          'message cannot be read, left to the dead-letter queue',
        );
        return;
      }
    } catch (error) {
      // Also the poll that is under way: what it brought could not be done either.
      if (outage.report(error)) receiving.abort(error);
      dependencies.metrics.message('failed');
      logger.warn({ ...fields, ...errorFields(error) }, 'message not done, left for another delivery');
      if (signal.aborted) await handBack(message);
      return;
    }
    dependencies.metrics.message('handled');
    try {
      await queue.delete(message);
    } catch (error) {
      logger.warn(
        { ...fields, ...errorFields(error) },
        'message done but not deleted: its next delivery will find the run',
      );
    }
  };

  /** Another replica may have it at once instead of after the visibility timeout. */
  const handBack = async (message: QueueMessage): Promise<void> => {
    dependencies.metrics.message('returned');
    try {
      await queue.changeVisibility(message, 0);
    } catch (error) {
      logger.warn(
        { messageId: message.id, ...errorFields(error) },
        'message not handed back: it returns after its visibility timeout',
      );
    }
  };

  let failures = 0;
  while (!signal.aborted) {
    await untilReady(dependencies, signal);
    await outage.over(signal);
    if (inHand.size >= concurrency) {
      await Promise.race(inHand);
      continue;
    }
    receiving = new AbortController();
    try {
      const messages = await queue.receive({
        max: concurrency - inHand.size,
        waitSeconds,
        signal: AbortSignal.any([signal, receiving.signal]),
      });
      failures = 0;
      for (const message of messages) {
        if (signal.aborted) await handBack(message);
        else take(message);
      }
    } catch (error) {
      if (signal.aborted) break;
      if (receiving.signal.aborted) continue;
      failures++;
      logger.warn({ failures, ...errorFields(error) }, 'nothing received from the queue; trying again');
      await sleep(clock, backoffMs(failures - 1, 500, 30_000, random), signal);
    }
  }

  logger.info({ inHand: inHand.size }, 'the bridge stops: nothing more is received');
  const cancel = clock.after(graceMs, () =>
    hardStop.abort(new Error(`still in hand ${graceMs} ms after the stop`)),
  );
  await Promise.all(inHand);
  cancel();
}

async function untilReady({ ready, clock }: WorkerDependencies, signal: AbortSignal): Promise<void> {
  while (!ready() && !signal.aborted) await sleep(clock, 100, signal);
}

import type { Clock } from '../../kube/clock.ts';
import { errorFields, type Logger } from '../../kube/log.ts';
import type { BridgeMetrics } from '../metrics.ts';
import type { Handled, Inbox, QueueMessage } from '../port.ts';
import { keepHidden } from './hide.ts';
import type { QueueMetrics } from './metrics.ts';

export interface SettleDependencies {
  readonly queue: Inbox;
  /** Makes the outcome of one message durable, and may be repeated. Throws when it could not. */
  readonly handle: (message: QueueMessage, signal: AbortSignal) => Promise<Handled>;
  /** Told of each failure; true when it concerns all messages alike. */
  readonly onFailure: (error: unknown) => boolean;
  readonly metrics: Pick<BridgeMetrics, 'message'> & Pick<QueueMetrics, 'extension'>;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly messageTimeoutMs: number;
  readonly visibilitySeconds: number;
  /** Aborted: what fails goes back at once. */
  readonly stopping: AbortSignal;
  /** Aborted: what is in hand is given up. */
  readonly hardStop: AbortSignal;
}

/** A message in hand, hidden from others until `reveal` is called. */
export interface Held {
  readonly message: QueueMessage;
  readonly reveal: () => Promise<void>;
}

export interface Settler {
  hold(message: QueueMessage): Held;
  /** To the end of one message; false when those behind it must not be handled. Never rejects. */
  settle(held: Held): Promise<boolean>;
  /** Somebody may have it at once instead of after the visibility timeout. Never rejects. */
  handBack(held: Held): Promise<void>;
}

/** What is done with one message: handled and deleted, or left, later or at once, for another delivery. */
export function createSettler(dependencies: SettleDependencies): Settler {
  const { queue, metrics, logger, clock, messageTimeoutMs, visibilitySeconds, stopping } = dependencies;

  return {
    hold(message) {
      const options = { inbox: queue, visibilitySeconds, metrics, logger, clock };
      return { message, reveal: keepHidden(message, options) };
    },
    settle,
    handBack,
  };

  async function settle(held: Held): Promise<boolean> {
    const { message, reveal } = held;
    const fields = { messageId: message.id, receiveCount: message.receiveCount };
    try {
      const handled = await withinTime(message);
      if (handled.kind === 'Undecodable') {
        metrics.message('undecodable');
        logger.warn(
          { ...fields, problem: handled.message },
          'message cannot be read, left to the dead-letter queue',
        );
        await reveal();
        return true;
      }
    } catch (error) {
      const concernsAll = dependencies.onFailure(error);
      metrics.message('failed');
      logger.warn({ ...fields, ...errorFields(error) }, 'message not done, left for another delivery');
      if (stopping.aborted) await handBack(held);
      else await postpone(held, concernsAll || !mayPass(error) ? 0 : message.receiveCount - 1);
      return false;
    }
    metrics.message('handled');
    try {
      await queue.delete(message);
    } catch (error) {
      logger.warn(
        { ...fields, ...errorFields(error) },
        'message done but not deleted: its next delivery will find the run',
      );
    }
    await reveal();
    return true;
  }

  async function withinTime(message: QueueMessage): Promise<Handled> {
    const timeout = new AbortController();
    const cancel = clock.after(messageTimeoutMs, () =>
      timeout.abort(new Error(`not done within ${messageTimeoutMs} ms`)),
    );
    try {
      return await dependencies.handle(message, AbortSignal.any([dependencies.hardStop, timeout.signal]));
    } finally {
      cancel();
    }
  }

  async function handBack(held: Held): Promise<void> {
    metrics.message('returned');
    await showIn(held, 0);
  }

  /** Twice as long at each delivery, so that the dead-letter limit is not reached within one outage of GitLab. */
  async function postpone(held: Held, doublings: number): Promise<void> {
    if (doublings <= 0) await held.reveal();
    else await showIn(held, Math.min(MAX_POSTPONED_SECONDS, visibilitySeconds * 2 ** doublings));
  }

  async function showIn({ message, reveal }: Held, seconds: number): Promise<void> {
    await reveal();
    try {
      await queue.changeVisibility(message, seconds);
    } catch (error) {
      logger.warn(
        { messageId: message.id, ...errorFields(error) },
        'message not handed back: it returns after its visibility timeout',
      );
    }
  }
}

const MAX_POSTPONED_SECONDS = 900;

/** Errors that know that a repetition ends the same way say so; of the others nobody knows. */
function mayPass(error: unknown): boolean {
  return !(error instanceof Error && 'retryable' in error && error.retryable === false);
}

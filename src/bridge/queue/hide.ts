import type { Clock } from '../../kube/clock.ts';
import { errorFields, type Logger } from '../../kube/log.ts';
import type { Inbox, QueueMessage } from '../port.ts';
import type { QueueMetrics } from './metrics.ts';

export interface HideOptions {
  readonly inbox: Pick<Inbox, 'changeVisibility'>;
  /** How long it was hidden when it was received, and is again from each extension on. */
  readonly visibilitySeconds: number;
  readonly metrics: Pick<QueueMetrics, 'extension'>;
  readonly logger: Logger;
  readonly clock: Clock;
}

/**
 * Keeps a message that is in hand from being handed out again, until the returned function is called. That one
 * resolves when no extension is on its way any more: one that arrived late would hide a message that was handed back.
 * An extension that fails is tried again at the next turn; should the message be handed out again, whoever gets it
 * finds what was done.
 */
export function keepHidden(message: QueueMessage, options: HideOptions): () => Promise<void> {
  const { inbox, visibilitySeconds, metrics, logger, clock } = options;
  // Two extensions may fail before others see the message.
  const everyMs = (visibilitySeconds * 1000) / 3;
  const under = new Set<Promise<void>>();
  let failures = 0;
  let released = false;

  const extend = async (): Promise<void> => {
    try {
      await inbox.changeVisibility(message, visibilitySeconds);
      metrics.extension('extended');
    } catch (error) {
      if (released) return;
      metrics.extension('failed');
      failures += 1;
      if (failures === 1)
        logger.warn(
          { messageId: message.id, ...errorFields(error) },
          'a message in hand could not be hidden for longer: it may be handed out again',
        );
    }
  };
  // Armed before the request: one that hangs must not keep the next from being sent.
  const arm = (): (() => void) =>
    clock.after(everyMs, () => {
      cancel = arm();
      const extending = extend().finally(() => under.delete(extending));
      under.add(extending);
    });
  let cancel = arm();

  return async () => {
    released = true;
    cancel();
    await Promise.all(under);
  };
}

import type { OutgoingMessage, Queue, QueueMessage, SendOutcome } from '../../src/bridge/port.ts';
import { messageBytes } from '../../src/bridge/queue/sqs-send.ts';
import type { Clock } from '../../src/kube/clock.ts';

export interface MemoryQueueOptions {
  readonly clock: Clock;
  /** With groups, deduplication, and several messages of one group in one receive, as SQS documents it. */
  readonly fifo?: boolean;
  readonly visibilitySeconds?: number;
  readonly maxReceiveCount?: number;
  readonly maxBytes?: number;
}

export interface MemoryQueue extends Queue {
  /** One message, with the id that it gets. */
  put(body: string, groupId?: string): string;
  /** Bodies of what is there, in somebody's hands or not, in their order. */
  readonly left: readonly string[];
  readonly dead: readonly string[];
  /** Bodies in the order in which they were handed out, again each time. */
  readonly handedOut: readonly string[];
  /** What was asked of it: `receive`, `delete id`, `hide id 30`. */
  readonly calls: readonly string[];
}

interface Stored {
  readonly message: Omit<QueueMessage, 'receipt' | 'receiveCount'>;
  readonly deduplicationId: string | undefined;
  receipt: string;
  receives: number;
  visibleAtMs: number;
}

/**
 * A queue in memory that is strict where the emulators are lax: a receipt ends with its visibility, for deletion as well
 * as for extension, and a group is locked while one of its messages is in somebody's hands. Its time is the test's.
 */
export function memoryQueue(options: MemoryQueueOptions): MemoryQueue {
  const {
    clock,
    fifo = false,
    visibilitySeconds: ownVisibility = 30,
    maxReceiveCount = Number.POSITIVE_INFINITY,
    maxBytes = 1024 * 1024,
  } = options;
  let stored: Stored[] = [];
  const known = new Map<string, number>();
  const dead: string[] = [];
  const handedOut: string[] = [];
  const calls: string[] = [];
  const waiters = new Set<() => void>();
  let count = 0;

  const wake = () => {
    for (const waiter of [...waiters]) waiter();
  };
  const inHand = (one: Stored) => one.receipt !== '' && one.visibleAtMs > clock.monotonicMs();

  const add = ({ body, groupId, deduplicationId, native }: OutgoingMessage): string => {
    count += 1;
    const id = `m${count}`;
    const attributes = Object.fromEntries(
      Object.entries(native ?? {}).flatMap(([name, { value }]) =>
        typeof value === 'string' ? [[name, value] as const] : [],
      ),
    );
    const message = {
      id,
      body,
      attributes,
      ...(native ? { native } : {}),
      ...(groupId === undefined ? {} : { groupId }),
    };
    stored.push({ message, deduplicationId, receipt: '', receives: 0, visibleAtMs: 0 });
    wake();
    return id;
  };

  const take = (max: number, visibilitySeconds: number): readonly QueueMessage[] => {
    const locked = new Set(stored.filter(inHand).map(({ message }) => message.groupId));
    const taken: QueueMessage[] = [];
    for (const one of [...stored]) {
      if (taken.length === max) break;
      if (inHand(one) || (fifo && locked.has(one.message.groupId))) continue;
      if (one.receives >= maxReceiveCount) {
        dead.push(one.message.body);
        stored = stored.filter((other) => other !== one);
        continue;
      }
      one.receives += 1;
      one.receipt = `${one.message.id}/${one.receives}`;
      one.visibleAtMs = clock.monotonicMs() + visibilitySeconds * 1000;
      clock.after(visibilitySeconds * 1000, wake);
      handedOut.push(one.message.body);
      taken.push({ ...one.message, receipt: one.receipt, receiveCount: one.receives });
    }
    return taken;
  };

  const held = (receipt: string): Stored => {
    const found = stored.find((one) => one.receipt === receipt && inHand(one));
    if (found === undefined) throw new Error(`the receipt handle ${receipt} has expired`);
    return found;
  };

  const remove = ({ id, receipt }: QueueMessage) => {
    calls.push(`delete ${id}`);
    const found = held(receipt);
    stored = stored.filter((one) => one !== found);
    wake();
  };

  return {
    put: (body, groupId) => add({ body, ...(groupId === undefined ? {} : { groupId }) }),
    get left() {
      return stored.map(({ message }) => message.body);
    },
    dead,
    handedOut,
    calls,
    async receive({ max, waitSeconds, visibilitySeconds = ownVisibility, signal }) {
      calls.push('receive');
      const end = clock.monotonicMs() + waitSeconds * 1000;
      for (;;) {
        signal.throwIfAborted();
        const taken = take(max, visibilitySeconds);
        if (taken.length > 0 || clock.monotonicMs() >= end) return taken;
        await new Promise<void>((resolve) => {
          const done = () => {
            cancel();
            waiters.delete(done);
            signal.removeEventListener('abort', done);
            resolve();
          };
          const cancel = clock.after(end - clock.monotonicMs(), done);
          waiters.add(done);
          signal.addEventListener('abort', done, { once: true });
        });
      }
    },
    async delete(message) {
      remove(message);
    },
    async deleteAll(messages) {
      for (const message of messages) remove(message);
    },
    async changeVisibility({ id, receipt }, seconds) {
      calls.push(`hide ${id} ${seconds}`);
      held(receipt).visibleAtMs = clock.monotonicMs() + seconds * 1000;
      clock.after(seconds * 1000, wake);
      if (seconds === 0) wake();
    },
    async send(messages) {
      return messages.map((message): SendOutcome => {
        if (messageBytes(message) > maxBytes)
          return { kind: 'TooLarge', message: `Message must be shorter than ${maxBytes} bytes.` };
        const { groupId, deduplicationId } = message;
        if (fifo && (groupId === undefined || deduplicationId === undefined))
          return { kind: 'Refused', message: 'a FIFO queue wants a group and a deduplication id' };
        const before = known.get(deduplicationId ?? '');
        if (fifo && before !== undefined && clock.monotonicMs() - before < 300_000) return { kind: 'Sent' };
        if (deduplicationId !== undefined) known.set(deduplicationId, clock.monotonicMs());
        add(message);
        return { kind: 'Sent' };
      });
    },
  };
}

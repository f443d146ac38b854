import { describe, expect, it, vi } from 'vitest';
import { type MemoryQueue, type MemoryQueueOptions, memoryQueue } from '../../../test/fakes/queue.ts';
import { ManualClock, sleep } from '../../kube/clock.ts';
import { silentLogger } from '../../kube/log.ts';
import type { MessageOutcome } from '../metrics.ts';
import type { Handled, Inbox, QueueMessage } from '../port.ts';
import { queueHealth } from './health.ts';
import { runWorker, type WorkerDependencies } from './worker.ts';

const DURABLE: Handled = { kind: 'Durable' };

interface Bench {
  readonly clock: ManualClock;
  readonly queue: MemoryQueue;
  /** Bodies in the order in which their handling began and ended: `+a`, `-a`. */
  readonly log: string[];
  readonly outcomes: MessageOutcome[];
  readonly extensions: string[];
  start(
    handle: (message: QueueMessage, signal: AbortSignal) => Promise<Handled>,
    overrides?: Partial<WorkerDependencies>,
  ): { stop(): Promise<void> };
}

function aBench(options: Omit<MemoryQueueOptions, 'clock'> = { fifo: true }): Bench {
  const clock = new ManualClock();
  const queue = memoryQueue({ fifo: true, ...options, clock });
  const log: string[] = [];
  const outcomes: MessageOutcome[] = [];
  const extensions: string[] = [];
  return {
    clock,
    queue,
    log,
    outcomes,
    extensions,
    start(handle, overrides = {}) {
      const stop = new AbortController();
      const done = runWorker(
        {
          queue,
          async handle(message, signal) {
            log.push(`+${message.body}`);
            try {
              return await handle(message, signal);
            } finally {
              log.push(`-${message.body}`);
            }
          },
          outage: { report: () => false, over: async () => undefined },
          ready: () => true,
          metrics: {
            message: (outcome) => outcomes.push(outcome),
            extension: (outcome) => extensions.push(outcome),
          },
          health: queueHealth(clock),
          logger: silentLogger,
          clock,
          random: () => 0.5,
          ...overrides,
        },
        stop.signal,
      );
      return {
        stop() {
          stop.abort(new Error('stop'));
          return done;
        },
      };
    },
  };
}

/** Rejects when the signal is aborted, as a request does. */
const until = (signal: AbortSignal) =>
  new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
  );

describe('a message that takes long', () => {
  it('BR-17: is hidden again and again for its 95 s, handled once and deleted', async () => {
    const { clock, queue, log, extensions, start } = aBench();
    queue.put('a', 'g');
    const worker = start(async () => {
      await sleep(clock, 95_000);
      return DURABLE;
    });
    await clock.advance(94_000);
    expect(extensions.length).toBeGreaterThanOrEqual(3);
    expect(queue.left).toEqual(['a']);
    await clock.advance(2_000);
    expect(queue.left).toEqual([]);
    expect(queue.handedOut).toEqual(['a']);
    expect(log).toEqual(['+a', '-a']);
    const before = extensions.length;
    await clock.advance(60_000);
    expect(extensions.length).toBe(before);
    await worker.stop();
  });

  it('BR-17: is handed out again when it cannot be hidden; its copy waits for it and finds what was done', async () => {
    const { clock, queue, log, extensions, start } = aBench();
    queue.put('a', 'g');
    queue.put('b', 'g');
    const failing: Inbox = { ...queue, changeVisibility: () => Promise.reject(new Error('throttled')) };
    const runs = new Set<string>();
    const made: string[] = [];
    const worker = start(
      async ({ body }) => {
        if (runs.has(body)) return DURABLE;
        await sleep(clock, 95_000);
        runs.add(body);
        made.push(body);
        return DURABLE;
      },
      { queue: failing },
    );
    await clock.advance(400_000);
    await worker.stop();
    expect(queue.handedOut.filter((body) => body === 'a').length).toBeGreaterThan(1);
    expect(extensions).not.toContain('extended');
    expect(made).toEqual(['a', 'b']);
    expect(queue.left).toEqual([]);
    // One at a time, whatever came back meanwhile.
    expect(log.map((word) => word[0])).toEqual(log.map((_, at) => (at % 2 === 0 ? '+' : '-')));
  });

  it('is given up after its time, and left for another delivery', async () => {
    const { clock, queue, outcomes, start } = aBench();
    queue.put('a', 'g');
    const reasons: unknown[] = [];
    const worker = start((_, signal) =>
      until(signal).catch((error: unknown) => {
        reasons.push(error);
        throw error;
      }),
    );
    await clock.advance(121_000);
    expect(reasons).toEqual([new Error('not done within 120000 ms')]);
    expect(outcomes).toEqual(['failed']);
    expect(queue.left).toEqual(['a']);
    const stopped = worker.stop();
    await clock.advance(30_000);
    await stopped;
  });
});

describe('messages of one group', () => {
  it('that come in one receive are handled one after the other, those of others beside them', async () => {
    const { clock, queue, log, start } = aBench();
    for (const body of ['a1', 'b1', 'a2', 'a3', 'b2']) queue.put(body, body[0]);
    const worker = start(async () => {
      await sleep(clock, 1_000);
      return DURABLE;
    });
    await clock.advance(500);
    expect(log).toEqual(['+a1', '+b1']);
    await clock.advance(10_000);
    await worker.stop();
    expect(log.filter((word) => word.includes('a'))).toEqual(['+a1', '-a1', '+a2', '-a2', '+a3', '-a3']);
    expect(log.indexOf('-b2')).toBeLessThan(log.indexOf('-a3'));
    expect(queue.left).toEqual([]);
    expect(queue.handedOut.length).toBe(5);
  });

  it('are not overtaken: behind one that failed they go back, and come again in their order', async () => {
    const { clock, queue, log, outcomes, start } = aBench();
    for (const body of ['a1', 'a2', 'a3', 'b1']) queue.put(body, body[0]);
    let failures = 1;
    const worker = start(async ({ body }) => {
      if (body === 'a1' && failures-- > 0) throw new Error('GitLab is away');
      return DURABLE;
    });
    await clock.advance(1_000);
    expect(log).toEqual(['+a1', '+b1', '-a1', '-b1']);
    expect(queue.left).toEqual(['a1', 'a2', 'a3']);
    await clock.advance(60_000);
    await worker.stop();
    expect(log.slice(4)).toEqual(['+a1', '-a1', '+a2', '-a2', '+a3', '-a3']);
    expect(queue.left).toEqual([]);
    expect(outcomes.filter((outcome) => outcome === 'returned').length).toBe(2);
  });

  it('BR-15: go on behind one that cannot be read, which ends in the dead-letter queue', async () => {
    const { clock, queue, log, start } = aBench({ maxReceiveCount: 3 });
    for (const body of ['hello', 'a2', 'a3']) queue.put(body, 'a');
    const worker = start(async ({ body }) =>
      body === 'hello' ? { kind: 'Undecodable', message: 'body: not JSON' } : DURABLE,
    );
    await clock.advance(1_000);
    expect(log.filter((word) => word[0] === '+')).toEqual(['+hello', '+a2', '+a3']);
    expect(queue.left).toEqual(['hello']);
    await clock.advance(300_000);
    await worker.stop();
    expect(queue.dead).toEqual(['hello']);
    expect(queue.handedOut.filter((body) => body === 'hello').length).toBe(3);
  });
});

describe('the number in hand', () => {
  it('is never above the limit, and what waits in its group counts', async () => {
    const { clock, queue, start } = aBench();
    for (let at = 0; at < 12; at++) queue.put(`m${at}`, `g${at % 6}`);
    let now = 0;
    let most = 0;
    const worker = start(
      async () => {
        most = Math.max(most, ++now);
        await sleep(clock, 5_000);
        now -= 1;
        return DURABLE;
      },
      { concurrency: 3 },
    );
    await clock.advance(60_000);
    await worker.stop();
    expect(most).toBe(3);
    expect(queue.left).toEqual([]);
  });
});

describe('a message that could not be done', () => {
  it('comes back later each time, up to a quarter of an hour', async () => {
    const { clock, queue, start } = aBench();
    queue.put('a', 'g');
    const at: number[] = [];
    const worker = start(async () => {
      at.push(clock.monotonicMs() / 1000);
      throw new Error('GitLab is away');
    });
    await clock.advance(3_000_000);
    await worker.stop();
    const pauses = at.map((time, index) => Math.round(time - (at[index - 1] ?? 0))).slice(1);
    expect(pauses).toEqual([30, 60, 120, 240, 480, 900, 900]);
  });

  it.each([
    ['that will be no better says so', Object.assign(new Error('invalid'), { retryable: false }), false],
    ['because of what concerns all', new Error('the API server is away'), true],
  ])('%s comes back at the usual pace', async (_name, error, concernsAll) => {
    const { clock, queue, start } = aBench({ maxReceiveCount: 4 });
    queue.put('a', 'g');
    const at: number[] = [];
    const worker = start(
      async () => {
        at.push(Math.round(clock.monotonicMs() / 1000));
        throw error;
      },
      { outage: { report: () => concernsAll, over: async () => undefined } },
    );
    await clock.advance(200_000);
    await worker.stop();
    expect(at).toEqual([0, 30, 60, 90]);
    expect(queue.dead).toEqual(['a']);
  });

  it('does no harm when it cannot be deleted: its next delivery finds what was done', async () => {
    const { clock, queue, outcomes, start } = aBench();
    queue.put('a', 'g');
    let failures = 1;
    const worker = start(async () => DURABLE, {
      queue: {
        ...queue,
        delete: (message) =>
          failures-- > 0 ? Promise.reject(new Error('no answer')) : queue.delete(message),
      },
    });
    await clock.advance(60_000);
    await worker.stop();
    expect(outcomes).toEqual(['handled', 'handled']);
    expect(queue.left).toEqual([]);
  });
});

describe('at shutdown', () => {
  it('finishes what is in hand, hands back what waits behind it, and receives nothing more', async () => {
    const { clock, queue, log, outcomes, start } = aBench();
    for (const body of ['a1', 'a2', 'b1']) queue.put(body, body[0]);
    const worker = start(async () => {
      await sleep(clock, 5_000);
      return DURABLE;
    });
    await clock.advance(1_000);
    const stopped = worker.stop();
    queue.put('c1', 'c');
    await clock.advance(5_000);
    await stopped;
    expect(log).toEqual(['+a1', '+b1', '-a1', '-b1']);
    expect(outcomes.toSorted()).toEqual(['handled', 'handled', 'returned']);
    expect(queue.calls).toContain('hide m2 0');
    expect(queue.left).toEqual(['a2', 'c1']);
  });

  it('hands back what is not done within the grace, also with its hands full', async () => {
    const { clock, queue, outcomes, start } = aBench();
    queue.put('a', 'a');
    queue.put('b', 'b');
    const worker = start((_, signal) => until(signal), { concurrency: 1 });
    await clock.advance(1_000);
    const done = vi.fn();
    const stopped = worker.stop().then(done);
    await clock.advance(9_000);
    expect(done).not.toHaveBeenCalled();
    await clock.advance(2_000);
    await stopped;
    expect(outcomes).toEqual(['failed', 'returned']);
    expect(queue.calls.at(-1)).toBe('hide m1 0');
    expect(queue.left).toEqual(['a', 'b']);
  });

  it('an extension that is on its way does not hide again what is handed back', async () => {
    const { clock, queue, start } = aBench();
    queue.put('a', 'a');
    const slow: Inbox = {
      ...queue,
      async changeVisibility(message, seconds) {
        if (seconds > 0) await sleep(clock, 4_000);
        return queue.changeVisibility(message, seconds);
      },
    };
    const worker = start((_, signal) => until(signal), { queue: slow });
    await clock.advance(1_000);
    const stopped = worker.stop();
    await clock.advance(20_000);
    await stopped;
    expect(queue.calls.at(-1)).toBe('hide m1 0');
  });
});

it('says for how long the queue could not be reached, once that is longer than a hiccup', async () => {
  const { clock, queue, start } = aBench();
  const health = queueHealth(clock);
  let away = true;
  const worker = start(async () => DURABLE, {
    health,
    queue: {
      ...queue,
      receive: (options) => (away ? Promise.reject(new Error('no such host')) : queue.receive(options)),
    },
  });
  await clock.advance(50_000);
  expect(health.problem()).toBeUndefined();
  await clock.advance(40_000);
  expect(health.problem()).toMatch(/^failing for \d+ s: no such host$/);
  away = false;
  queue.put('a', 'a');
  await clock.advance(60_000);
  expect(health.problem()).toBeUndefined();
  expect(queue.left).toEqual([]);
  await worker.stop();
});

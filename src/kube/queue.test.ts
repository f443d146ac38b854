import { expect, test } from 'vitest';
import { ManualClock } from './clock.ts';
import { createWorkQueue } from './queue.ts';

const aQueue = (clock = new ManualClock()) => ({
  clock,
  queue: createWorkQueue({ clock, random: () => 1, baseBackoffMs: 100, maxBackoffMs: 1_000 }),
});

/** Takes until the queue ends; works on each key for `workMs` of the clock. */
function aWorker(setup: ReturnType<typeof aQueue>, workMs: number, seen: string[]): Promise<void> {
  return (async () => {
    for (let key = await setup.queue.take(); key !== undefined; key = await setup.queue.take()) {
      const mine = key;
      seen.push(`${mine} begins ${setup.clock.monotonicMs()}`);
      await new Promise<void>((resolve) => setup.clock.after(workMs, resolve));
      seen.push(`${mine} ends ${setup.clock.monotonicMs()}`);
      setup.queue.done(mine);
    }
  })();
}

test('a key added many times while it waits is handed out once', async () => {
  const { queue } = aQueue();
  for (let i = 0; i < 10; i++) queue.add('a');
  queue.add('b');
  expect(queue.depth).toBe(2);
  expect(await queue.take()).toBe('a');
  expect(await queue.take()).toBe('b');
  expect(queue.depth).toBe(0);
});

test('a key is never worked on twice at once and runs again when it was added meanwhile', async () => {
  const setup = aQueue();
  const seen: string[] = [];
  void aWorker(setup, 100, seen);
  void aWorker(setup, 100, seen);
  setup.queue.add('a');
  await setup.clock.advance(50);
  setup.queue.add('a');
  setup.queue.add('a');
  await setup.clock.advance(1_000);
  expect(seen).toEqual(['a begins 0', 'a ends 100', 'a begins 100', 'a ends 200']);
});

test('different keys are worked on at the same time, up to the number of workers', async () => {
  const setup = aQueue();
  const seen: string[] = [];
  void aWorker(setup, 100, seen);
  void aWorker(setup, 100, seen);
  for (const key of ['a', 'b', 'c']) setup.queue.add(key);
  await setup.clock.advance(1_000);
  expect(seen.filter((line) => line.includes('begins'))).toEqual([
    'a begins 0',
    'b begins 0',
    'c begins 100',
  ]);
});

test('backoff doubles per key up to its bound, and starts anew after forget', async () => {
  const { queue, clock } = aQueue();
  const waits: number[] = [];
  for (let i = 0; i < 6; i++) {
    const start = clock.monotonicMs();
    queue.addRateLimited('bad');
    const taken = queue.take().then((key) => {
      waits.push(clock.monotonicMs() - start);
      if (key !== undefined) queue.done(key);
    });
    await clock.advance(5_000);
    await taken;
  }
  expect(waits).toEqual([100, 200, 400, 800, 1_000, 1_000]);
  expect(queue.failures('bad')).toBe(6);
  queue.forget('bad');
  expect(queue.failures('bad')).toBe(0);
});

test('a failing key does not delay another one', async () => {
  const { queue } = aQueue();
  queue.addRateLimited('bad');
  queue.add('good');
  expect(await queue.take()).toBe('good');
});

test('a server that asks for a longer pause gets it', async () => {
  const { queue, clock } = aQueue();
  let taken = '';
  void queue.take().then((key) => {
    taken = key ?? '';
  });
  queue.addRateLimited('a', 3_000);
  await clock.advance(2_999);
  expect(taken).toBe('');
  await clock.advance(1);
  expect(taken).toBe('a');
});

test('of several delayed adds the earliest counts and the key comes once', async () => {
  const { queue, clock } = aQueue();
  queue.addAfter('a', 500);
  queue.addAfter('a', 100);
  queue.addAfter('a', 900);
  await clock.advance(100);
  expect(queue.depth).toBe(1);
  expect(clock.pending).toBe(0);
});

test('shutting down with drain works on what is due, drops what waits, and resolves after the last is done', async () => {
  const setup = aQueue();
  const seen: string[] = [];
  const worker = aWorker(setup, 100, seen);
  setup.queue.add('a');
  setup.queue.add('b');
  setup.queue.addAfter('later', 50);
  await setup.clock.advance(10);
  let down = false;
  const stopped = setup.queue.shutDown({ drain: true }).then(() => {
    down = true;
  });
  setup.queue.add('too late');
  await setup.clock.advance(150);
  expect(down).toBe(false);
  await setup.clock.advance(1_000);
  await stopped;
  await worker;
  expect(seen.filter((line) => line.includes('ends'))).toEqual(['a ends 100', 'b ends 200']);
  expect(setup.clock.pending).toBe(0);
});

test('shutting down without drain finishes only what is being worked on', async () => {
  const setup = aQueue();
  const seen: string[] = [];
  const worker = aWorker(setup, 100, seen);
  setup.queue.add('a');
  setup.queue.add('b');
  await setup.clock.advance(10);
  setup.queue.add('a');
  const stopped = setup.queue.shutDown();
  await setup.clock.advance(1_000);
  await stopped;
  await worker;
  expect(seen).toEqual(['a begins 0', 'a ends 100']);
});

test('giving back a key that was not taken is an error, since it would hide a double run', () => {
  const { queue } = aQueue();
  expect(() => queue.done('a')).toThrow('not being worked on');
});

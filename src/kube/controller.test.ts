import { expect, test } from 'vitest';
import { ManualClock } from './clock.ts';
import { type ControllerOptions, createController, type Source } from './controller.ts';
import { KubeError } from './errors.ts';

/** A source that the test wakes by hand; synced at once unless told otherwise. */
function aSource(synced: Promise<void> = Promise.resolve()) {
  let wake: (key: string) => void = () => undefined;
  const source: Source = {
    subscribe(enqueue) {
      wake = enqueue;
      return () => {
        wake = () => undefined;
      };
    },
    waitForSync: (signal) =>
      Promise.race([
        synced,
        new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      ]),
  };
  return { source, wake: (key: string) => wake(key) };
}

function aController(reconcile: ControllerOptions['reconcile'], options: Partial<ControllerOptions> = {}) {
  const clock = new ManualClock();
  const { source, wake } = aSource();
  const controller = createController({
    name: 'test',
    sources: [source],
    reconcile,
    clock,
    random: () => 1,
    ...options,
  });
  return { clock, wake, controller };
}

test('nothing is reconciled before every source has synced, and what was told meanwhile is not lost', async () => {
  const synced = Promise.withResolvers<void>();
  const { source, wake } = aSource(synced.promise);
  const seen: string[] = [];
  const clock = new ManualClock();
  const controller = createController({
    name: 'test',
    sources: [source],
    clock,
    reconcile: async (key) => void seen.push(key) as undefined,
  });
  const started = controller.start();
  wake('early');
  await clock.advance(1_000);
  expect(seen).toEqual([]);
  synced.resolve();
  await started;
  await clock.advance(0);
  expect(seen).toEqual(['early']);
  await controller.stop();
});

test('a failing key comes back with a growing pause while the others go on', async () => {
  const at: number[] = [];
  const good: string[] = [];
  const setup = aController(async (key) => {
    if (key !== 'bad') {
      good.push(key);
      return undefined;
    }
    at.push(setup.clock.monotonicMs());
    throw new Error('no');
  });
  await setup.controller.start();
  setup.wake('bad');
  setup.wake('good');
  await setup.clock.advance(3_000);
  expect(at).toEqual([0, 200, 600, 1_400, 3_000]);
  expect(good).toEqual(['good']);
  await setup.controller.stop();
});

test('a server that asks for a pause gets it', async () => {
  const at: number[] = [];
  const setup = aController(async () => {
    at.push(setup.clock.monotonicMs());
    if (at.length === 1)
      throw new KubeError({ where: 'X', reason: 'TooManyRequests', message: 'slow', retryAfterMs: 5_000 });
    return undefined;
  });
  await setup.controller.start();
  setup.wake('a');
  await setup.clock.advance(10_000);
  expect(at).toEqual([0, 5_000]);
  await setup.controller.stop();
});

test('a result may ask to come again', async () => {
  const at: number[] = [];
  const setup = aController(async () => {
    at.push(setup.clock.monotonicMs());
    return at.length < 3 ? { requeueAfterMs: 1_000 } : undefined;
  });
  await setup.controller.start();
  setup.wake('a');
  await setup.clock.advance(10_000);
  expect(at).toEqual([0, 1_000, 2_000]);
  await setup.controller.stop();
});

test('stop aborts what runs, waits for it, and starts nothing more', async () => {
  const story: string[] = [];
  const setup = aController(
    async (key, signal) => {
      story.push(`${key} begins`);
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      await Promise.resolve();
      story.push(`${key} ends`);
      throw signal.reason;
    },
    { concurrency: 1 },
  );
  await setup.controller.start();
  setup.wake('a');
  setup.wake('b');
  await setup.clock.advance(0);
  await setup.controller.stop();
  story.push('stopped');
  setup.wake('c');
  setup.controller.enqueue('d', 10);
  await setup.clock.advance(1_000_000);
  expect(story).toEqual(['a begins', 'a ends', 'stopped']);
  expect(setup.clock.pending).toBe(0);
});

test('stop before the sources have synced ends the start', async () => {
  const { source } = aSource(new Promise(() => undefined));
  const controller = createController({ name: 'test', sources: [source], reconcile: async () => undefined });
  const started = controller.start();
  await Promise.all([expect(started).rejects.toThrow('was stopped'), controller.stop()]);
});

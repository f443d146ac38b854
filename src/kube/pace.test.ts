import { expect, test } from 'vitest';
import { ManualClock } from './clock.ts';
import { createPace } from './pace.ts';

test('no window holds more than the allowed starts, and a burst up to it does not wait', async () => {
  const clock = new ManualClock();
  const pace = createPace(clock, 5, 1000);
  const starts: number[] = [];
  for (let i = 0; i < 23; i++) void pace.next().then(() => starts.push(clock.monotonicMs()));
  await clock.advance(10_000);
  expect(starts).toHaveLength(23);
  expect(starts.slice(0, 5)).toEqual([0, 0, 0, 0, 0]);
  for (const start of starts) {
    expect(starts.filter((other) => other >= start && other < start + 1000).length).toBeLessThanOrEqual(5);
  }
});

test('an aborted wait ends at once', async () => {
  const clock = new ManualClock();
  const pace = createPace(clock, 1, 60_000);
  await pace.next();
  const abort = new AbortController();
  const waiting = pace.next(abort.signal);
  abort.abort();
  await waiting;
  expect(clock.pending).toBe(0);
});

import { describe, expect, it } from 'vitest';
import type { Pod } from '../../kube/kinds.ts';
import { podProblem } from '../../kube/pod-state.ts';
import { nextSetback, pauseLeft, type Setback, setbackProblem } from './setback.ts';

const start = new Date('2026-01-01T00:00:00Z');
const after = (seconds: number) => new Date(start.getTime() + seconds * 1000);

const evicted = (name = 'p'): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [] },
  status: { phase: 'Failed', reason: 'Evicted', message: 'The node was low on memory' },
});

const next = (before: Setback | undefined, ended: readonly Pod[], seconds: number) =>
  nextSetback(before, ended, { replicas: 3, now: after(seconds) }, podProblem);

/** One pod ends at once each time the pool tries again; the seconds of each pause. */
function pauses(times: number): readonly number[] {
  let setback: Setback | undefined;
  let seconds = 0;
  return Array.from({ length: times }, () => {
    setback = next(setback, [evicted()], seconds);
    const pause = (pauseLeft(setback, after(seconds)) ?? 0) / 1000;
    seconds += pause + 1;
    setback = next(setback, [], seconds);
    return pause;
  });
}

describe('standby pods that end by themselves', () => {
  it('are replaced at once the first time, then with pauses that grow to five minutes', () => {
    expect(pauses(10)).toEqual([0, 5, 10, 20, 40, 80, 160, 300, 300, 300]);
  });

  it('that end together are one setback, and each of them is held back', () => {
    const first = next(undefined, [evicted()], 0);
    const second = next(first, [evicted('a'), evicted('b')], 1);
    expect(second).toMatchObject({ failures: 2, held: 2, pod: 'a', reason: 'Evicted' });
    const third = next(second, [evicted('c')], 2);
    expect(third).toMatchObject({ failures: 2, held: 3, pod: 'c', retryAt: second?.retryAt });
  });

  it('never hold back more than the pool wants', () => {
    const first = next(undefined, [evicted()], 0);
    expect(
      next(
        first,
        Array.from({ length: 9 }, () => evicted()),
        1,
      )?.held,
    ).toBe(3);
  });

  it('are tried again in full when the pause is over', () => {
    const held = next(next(undefined, [evicted()], 0), [evicted()], 1);
    expect(next(held, [], 5.9)).toEqual(held);
    expect(next(held, [], 6)).toMatchObject({ failures: 2, held: 0 });
    expect(pauseLeft(next(held, [], 6), after(6))).toBeUndefined();
  });

  it('are forgotten after ten good minutes', () => {
    const held = next(next(undefined, [evicted()], 0), [evicted()], 1);
    expect(next(held, [], 600)).toMatchObject({ failures: 2 });
    expect(next(held, [], 601)).toBeUndefined();
    expect(next(held, [evicted()], 601)).toMatchObject({ failures: 1, held: 0 });
  });

  it('are told with pod, reason, and when the pool tries again', () => {
    expect(setbackProblem(next(undefined, [evicted()], 0))).toBeUndefined();
    expect(setbackProblem(next(next(undefined, [evicted()], 0), [evicted('q')], 1))).toEqual({
      reason: 'Evicted',
      message:
        'pod q ended by itself: The node was low on memory; 2 times by now, so 1 not replaced before 2026-01-01T00:00:06.000Z',
    });
  });
});

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from './clock.ts';

const DAY = 24 * 3_600_000;

describe('systemClock.after', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('waits out delays that do not fit into a timer of Node', () => {
    const action = vi.fn();
    systemClock.after(60 * DAY, action);
    vi.advanceTimersByTime(60 * DAY - 1);
    expect(action).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(action).toHaveBeenCalledOnce();
  });

  it('can be cancelled in any part of a long delay', () => {
    const action = vi.fn();
    const cancel = systemClock.after(60 * DAY, action);
    vi.advanceTimersByTime(40 * DAY);
    cancel();
    vi.advanceTimersByTime(40 * DAY);
    expect(action).not.toHaveBeenCalled();
  });
});

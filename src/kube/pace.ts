import { type Clock, sleep } from './clock.ts';

export interface Pace {
  /** Resolves when the next request may start; early, with the caller to look, when the signal is aborted. */
  next(signal?: AbortSignal): Promise<void>;
}

/** At most `count` starts in any window of `windowMs`, in the order asked. A burst up to `count` does not wait. */
export function createPace(clock: Clock, count: number, windowMs: number): Pace {
  const starts: number[] = [];
  return {
    async next(signal) {
      const now = clock.monotonicMs();
      const blocking = starts.length < count ? undefined : starts[starts.length - count];
      const at = blocking === undefined ? now : Math.max(now, blocking + windowMs);
      // Booked before waiting, so that several callers cannot take the same place.
      starts.push(at);
      if (starts.length > count) starts.shift();
      if (at > now) await sleep(clock, at - now, signal);
    },
  };
}

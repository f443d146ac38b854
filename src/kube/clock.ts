import { performance } from 'node:perf_hooks';

/** Time as a parameter. */
export interface Clock {
  /** Wall time, for what is written down. */
  now(): Date;
  /** Milliseconds that only go forward, for durations; unrelated to wall time. */
  monotonicMs(): number;
  /** Runs `action` once after `ms`; the returned function cancels it. */
  after(ms: number, action: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  after(ms, action) {
    let timer: NodeJS.Timeout;
    const arm = (leftMs: number) => {
      const now = Math.min(leftMs, LONGEST_TIMER_MS);
      timer = setTimeout(() => (leftMs > now ? arm(leftMs - now) : action()), now);
    };
    arm(ms);
    return () => clearTimeout(timer);
  },
};

/** Node fires a longer timer at once: its delay is a signed 32-bit number, some 24.8 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A number in [0, 1). */
export type Random = () => number;

/** Resolves after `ms`, or at once when the signal is aborted: the caller looks at its signal. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const done = () => {
      cancel();
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const cancel = clock.after(ms, done);
    signal?.addEventListener('abort', done, { once: true });
  });
}

/**
 * Exponential backoff with full jitter on its upper half: for attempt 0, 1, 2, … between half and all of
 * `baseMs * 2^attempt`, at most `maxMs`. Never 0, so that a failing loop cannot spin.
 */
export function backoffMs(attempt: number, baseMs: number, maxMs: number, random: Random): number {
  const full = Math.min(maxMs, baseMs * 2 ** Math.min(attempt, 30));
  return full / 2 + (full / 2) * random();
}

/** A clock that stands still until it is told to move: for tests. */
export class ManualClock implements Clock {
  #ms: number;
  readonly #start: number;
  #timers: { readonly at: number; readonly action: () => void }[] = [];

  constructor(start = new Date('2026-01-01T00:00:00Z')) {
    this.#start = start.getTime();
    this.#ms = 0;
  }

  now(): Date {
    return new Date(this.#start + this.#ms);
  }

  monotonicMs(): number {
    return this.#ms;
  }

  after(ms: number, action: () => void): () => void {
    const timer = { at: this.#ms + Math.max(0, ms), action };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Timers that wait. */
  get pending(): number {
    return this.#timers.length;
  }

  /** Moves time forward, running each due timer at its own moment and letting promises settle after each. */
  async advance(ms: number): Promise<void> {
    const end = this.#ms + ms;
    await settle();
    for (;;) {
      const due = this.#timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((other) => other !== due);
      this.#ms = Math.max(this.#ms, due.at);
      due.action();
      await settle();
    }
    this.#ms = end;
  }
}

/** Lets everything that waits on resolved promises run. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

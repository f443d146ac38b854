import type { Clock } from '../../kube/clock.ts';

/** Whether a loop reaches its queue, for `/readyz`. */
export interface QueueHealth {
  reached(): void;
  /** The queue could not be reached, or refused. */
  failed(problem: string): void;
  /** What is wrong and for how long, once that is longer than a hiccup. */
  problem(): string | undefined;
}

/** Longer than a failover of SQS or a rotated credential takes. */
const HICCUP_MS = 60_000;

export function queueHealth(clock: Clock, hiccupMs = HICCUP_MS): QueueHealth {
  let failing: { readonly sinceMs: number; readonly problem: string } | undefined;
  return {
    reached() {
      failing = undefined;
    },
    failed(problem) {
      failing = { sinceMs: failing?.sinceMs ?? clock.monotonicMs(), problem };
    },
    problem() {
      const ms = failing === undefined ? 0 : clock.monotonicMs() - failing.sinceMs;
      if (failing === undefined || ms < hiccupMs) return undefined;
      return `failing for ${Math.round(ms / 1000)} s: ${failing.problem}`;
    },
  };
}

export interface RetryPolicy {
  /** Attempts in all, the first one included. */
  readonly attempts: number;
  readonly baseMs: number;
  readonly maxMs: number;
  /** A Retry-After beyond this is not waited for here: the error carries it and the caller requeues. */
  readonly maxRetryAfterMs: number;
}

/** 0.5 + 1 + 2 s of waiting at the most: long enough for a restart of a web node, short beside a run. */
export const DEFAULT_RETRY: RetryPolicy = { attempts: 4, baseMs: 500, maxMs: 8_000, maxRetryAfterMs: 60_000 };

/** Statuses that another attempt may cure. 501 and 505 say that it never will. */
export function isRetryableStatus(status: number): boolean {
  return (
    status === 408 || status === 425 || status === 429 || (status >= 500 && status !== 501 && status !== 505)
  );
}

/** Seconds or an HTTP date, as milliseconds from now; undefined when missing or not understood. */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  const text = value.trim();
  if (/^\d+(\.\d+)?$/.test(text)) return Math.round(Number(text) * 1000);
  // Date.parse reads nearly anything; an HTTP date starts with the name of a day.
  if (!/^[A-Z][a-z]{2}/.test(text)) return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}

/** Exponential, with the upper half of each step drawn at random so that replicas do not march together. */
export function backoffMs(policy: RetryPolicy, attempt: number, random: number): number {
  const step = Math.min(policy.maxMs, policy.baseMs * 2 ** (attempt - 1));
  return Math.round(step / 2 + (step / 2) * random);
}

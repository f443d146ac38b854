/** What bounds one run. Cumulative tokens never end a run: replayed history counts twice and would mislead. */
export interface Limits {
  /** Model round trips. */
  readonly maxIterations: number;
  /** Input tokens of a single call. */
  readonly contextTokens: number;
  /** Money for the whole run; enforced only when the model's price is known. */
  readonly budgetUsd?: number;
}

export const DEFAULT_LIMITS: Limits = { maxIterations: 30, contextTokens: 60_000 };

/** From this share of a limit on, the model is warned with every call. */
export const SOFT_SHARE = 0.8;

/** Empty or malformed answers in a row (without a tool call between) that are asked again. */
export const MAX_EMPTY_RETRIES = 2;

export interface RetryPolicy {
  /** Repetitions after the first attempt. */
  readonly count: number;
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
}

/** 5, 10, 20, 40 s. */
export const MODEL_RETRY: RetryPolicy = { count: 4, baseDelayMs: 5_000, maxDelayMs: 60_000 };

/**
 * Assumed output of a call whose cost must be known before it is made: what a thorough report takes. A budget
 * may be overrun by what one answer exceeds this.
 */
export const ASSUMED_OUTPUT_TOKENS = 4_096;

/** Bytes of JSON per token, low on purpose: estimates must not fall short. */
export const BYTES_PER_TOKEN = 3;

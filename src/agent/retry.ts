import { type Clock, orAborted } from './clock.ts';
import type { RetryPolicy } from './limits.ts';
import { type GenerateRequest, type Model, ModelError, type ModelResponse } from './models/port.ts';

export interface RetryNotice {
  /** 1 for the first repetition. */
  readonly attempt: number;
  readonly delayMs: number;
  readonly message: string;
}

/**
 * One model call with its repetitions. Waits as long as the provider asked for, else twice as long each time,
 * never longer than the policy's cap. Throws the last `ModelError`, or the signal's reason.
 */
export async function generateWithRetry(
  model: Model,
  request: GenerateRequest & { readonly signal: AbortSignal },
  { policy, clock, onRetry }: { policy: RetryPolicy; clock: Clock; onRetry: (notice: RetryNotice) => void },
): Promise<ModelResponse> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await orAborted(model.generate(request), request.signal);
    } catch (error) {
      request.signal.throwIfAborted();
      if (!(error instanceof ModelError) || !error.retryable || attempt >= policy.count) throw error;
      const wanted = error.retryAfterMs ?? policy.baseDelayMs * 2 ** attempt;
      const delayMs = Math.min(Math.max(0, wanted), policy.maxDelayMs);
      onRetry({ attempt: attempt + 1, delayMs, message: error.message });
      await clock.sleep(delayMs, request.signal);
    }
  }
}

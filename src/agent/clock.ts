import { systemHttpClock } from '../http/clock.ts';

/** Time as a parameter: tests hand in their own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Rejects with the signal's reason when aborted. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = systemHttpClock;

/**
 * Settles with the work, or rejects with the signal's reason as soon as it is aborted: a model or a tool that
 * ignores its signal cannot hold up a run.
 */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    work.catch(() => undefined);
    return Promise.reject(signal.reason);
  }
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

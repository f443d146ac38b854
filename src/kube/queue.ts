import { backoffMs, type Clock, type Random, systemClock } from './clock.ts';

/**
 * Work by key. A key is handed out to one taker at a time; added again while it is being worked on, it comes
 * once more afterwards; added ten times while it waits, it comes once.
 */
export interface WorkQueue {
  add(key: string): void;
  /** Adds the key after `ms`; of several such calls the earliest counts. */
  addAfter(key: string, ms: number): void;
  /** Adds the key after its own backoff, which doubles each time until `forget`. `atLeastMs`: a server's wish. */
  addRateLimited(key: string, atLeastMs?: number): void;
  /** The key did well: its next backoff starts anew. */
  forget(key: string): void;
  /** Times `addRateLimited` was called since `forget`. */
  failures(key: string): number;
  /** The next key, which the caller must give back by `done`. Undefined once the queue is shut down and empty. */
  take(): Promise<string | undefined>;
  done(key: string): void;
  /** Keys that are due, without those being worked on or waiting for their time. */
  readonly depth: number;
  /**
   * Takes no more keys, drops those that wait for their time, hands out what is due (`drain: true`) or nothing.
   * Resolves when every key that was taken is done.
   */
  shutDown(options?: { readonly drain?: boolean }): Promise<void>;
}

export interface WorkQueueOptions {
  readonly clock?: Clock;
  readonly random?: Random;
  /** First backoff, default 200 ms. */
  readonly baseBackoffMs?: number;
  /** Longest backoff, default 5 minutes. */
  readonly maxBackoffMs?: number;
}

export function createWorkQueue(options: WorkQueueOptions = {}): WorkQueue {
  const clock = options.clock ?? systemClock;
  const random = options.random ?? Math.random;
  const baseMs = options.baseBackoffMs ?? 200;
  const maxMs = options.maxBackoffMs ?? 300_000;

  /** Due, in order of arrival. */
  const due = new Set<string>();
  /** Handed out; true when the key was added again meanwhile. */
  const taken = new Map<string, boolean>();
  const waiting = new Map<string, { readonly at: number; readonly cancel: () => void }>();
  const failed = new Map<string, number>();
  const takers: ((key: string | undefined) => void)[] = [];
  const drained = Promise.withResolvers<void>();
  let shuttingDown = false;

  function add(key: string): void {
    if (shuttingDown) return;
    if (taken.has(key)) {
      taken.set(key, true);
      return;
    }
    due.add(key);
    handOut();
  }

  function addAfter(key: string, ms: number): void {
    if (shuttingDown) return;
    if (ms <= 0) {
      add(key);
      return;
    }
    const at = clock.monotonicMs() + ms;
    const known = waiting.get(key);
    if (known !== undefined && known.at <= at) return;
    known?.cancel();
    const cancel = clock.after(ms, () => {
      waiting.delete(key);
      add(key);
    });
    waiting.set(key, { at, cancel });
  }

  function handOut(): void {
    for (const key of due) {
      const taker = takers.shift();
      if (taker === undefined) return;
      due.delete(key);
      taken.set(key, false);
      taker(key);
    }
    if (!shuttingDown) return;
    for (const taker of takers.splice(0)) taker(undefined);
    if (taken.size === 0 && due.size === 0) drained.resolve();
  }

  return {
    add,
    addAfter,
    addRateLimited(key, atLeastMs = 0) {
      const count = failed.get(key) ?? 0;
      failed.set(key, count + 1);
      addAfter(key, Math.max(atLeastMs, backoffMs(count, baseMs, maxMs, random)));
    },
    forget(key) {
      failed.delete(key);
    },
    failures: (key) => failed.get(key) ?? 0,
    take() {
      return new Promise((resolve) => {
        takers.push(resolve);
        handOut();
      });
    },
    done(key) {
      const again = taken.get(key);
      if (again === undefined) throw new Error(`work queue: "${key}" is not being worked on`);
      taken.delete(key);
      if (again && !shuttingDown) due.add(key);
      handOut();
    },
    get depth() {
      return due.size;
    },
    shutDown({ drain = false } = {}) {
      shuttingDown = true;
      for (const { cancel } of waiting.values()) cancel();
      waiting.clear();
      if (!drain) due.clear();
      handOut();
      return drained.promise;
    },
  };
}

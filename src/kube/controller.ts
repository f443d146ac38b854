import type { KubeObject } from '../crds/meta.ts';
import { type Change, keyOf } from './cache.ts';
import type { Clock, Random } from './clock.ts';
import { isKubeError } from './errors.ts';
import type { Informer } from './informer.ts';
import { errorFields, type Logger, silentLogger } from './log.ts';
import { createWorkQueue, type WorkQueue } from './queue.ts';

export interface ReconcileResult {
  /** Come again after this, even when nothing changes. */
  readonly requeueAfterMs?: number;
}

/** One kind of object whose changes wake a controller, and which keys they wake. */
export interface Source {
  /** Calls `enqueue` with the keys that a change concerns; returns the function that ends it. */
  subscribe(enqueue: (key: string) => void): () => void;
  waitForSync(signal: AbortSignal): Promise<void>;
}

/** Wakes the keys that `keys` names for a change; by default the changed object's own key, `namespace/name`. */
export function from<T extends KubeObject>(
  informer: Informer<T>,
  keys: (change: Change<T>) => Iterable<string> = (change) => [keyOf(change.object)],
): Source {
  return {
    subscribe: (enqueue) =>
      informer.subscribe((change) => {
        for (const key of keys(change)) enqueue(key);
      }),
    waitForSync: (signal) => informer.waitForSync(signal),
  };
}

export interface ControllerOptions {
  /** For logs. */
  readonly name: string;
  readonly sources: readonly Source[];
  /**
   * Makes the world of one key right, from current state, never from the event. Never runs twice at once for
   * one key. A throw brings the key back after its own backoff (or the server's Retry-After); the other keys go on.
   * `signal` is aborted by `stop`.
   */
  reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult | undefined>;
  /** Keys worked on at once, default 4. */
  readonly concurrency?: number;
  readonly queue?: WorkQueue;
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
}

export interface Controller {
  readonly name: string;
  /** Waits until every source has synced, then works until `stop`. Rejects when stopped before the sync. */
  start(): Promise<void>;
  /** Aborts the running reconciles and resolves when they have ended. */
  stop(): Promise<void>;
  /** Wakes one key, for what no source tells. */
  enqueue(key: string, afterMs?: number): void;
  /** Keys that are due and not yet worked on. */
  readonly depth: number;
}

/** A loop of `reconcile` over keys. Start it after its informers were started. */
export function createController(options: ControllerOptions): Controller {
  const logger = options.logger ?? silentLogger;
  const queue =
    options.queue ??
    createWorkQueue({
      ...(options.clock === undefined ? {} : { clock: options.clock }),
      ...(options.random === undefined ? {} : { random: options.random }),
    });
  const stopping = new AbortController();
  let unsubscribe: readonly (() => void)[] = [];
  let workers: readonly Promise<void>[] = [];

  async function work(): Promise<void> {
    for (let key = await queue.take(); key !== undefined; key = await queue.take()) {
      try {
        await reconcileOnce(key);
      } finally {
        queue.done(key);
      }
    }
  }

  async function reconcileOnce(key: string): Promise<void> {
    try {
      const result = await options.reconcile(key, stopping.signal);
      queue.forget(key);
      if (result?.requeueAfterMs !== undefined) queue.addAfter(key, result.requeueAfterMs);
    } catch (error) {
      if (stopping.signal.aborted) return;
      queue.addRateLimited(key, isKubeError(error) ? error.retryAfterMs : undefined);
      const fields = { controller: options.name, key, failures: queue.failures(key), ...errorFields(error) };
      // A conflict is somebody else having been faster: the next run reads again.
      if (isKubeError(error, 'Conflict'))
        logger.debug(fields, 'reconcile met a newer version, running again');
      else logger.error(fields, 'reconcile failed, running again later');
    }
  }

  return {
    name: options.name,
    async start() {
      unsubscribe = options.sources.map((source) => source.subscribe((key) => queue.add(key)));
      await Promise.all(options.sources.map((source) => source.waitForSync(stopping.signal)));
      stopping.signal.throwIfAborted();
      workers = Array.from({ length: options.concurrency ?? 4 }, work);
    },
    async stop() {
      stopping.abort(new Error(`controller ${options.name} was stopped`));
      for (const end of unsubscribe) end();
      await queue.shutDown();
      await Promise.all(workers);
    },
    enqueue: (key, afterMs = 0) => queue.addAfter(key, afterMs),
    get depth() {
      return queue.depth;
    },
  };
}

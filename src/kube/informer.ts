import type { KubeObject, ResourceKind } from '../crds/meta.ts';
import { type Change, ObjectCache } from './cache.ts';
import { listRequest } from './client.ts';
import { backoffMs, type Clock, type Random, sleep, systemClock } from './clock.ts';
import { errorFromStatus, isKubeError, KubeError } from './errors.ts';
import { errorFields, type Logger, silentLogger } from './log.ts';
import { collectionPath, describeRef, kindId } from './paths.ts';
import { asList, asObject, isRecord } from './shape.ts';
import type { Transport } from './transport.ts';
import { compareVersions } from './versions.ts';

export interface InformerOptions<T extends KubeObject> {
  readonly transport: Transport;
  readonly kind: ResourceKind<T>;
  /** Absent: all namespaces (needs a ClusterRole). */
  readonly namespace?: string;
  readonly labelSelector?: string;
  /** Every object is listed and told again this often, default 10 minutes; 0 never. */
  readonly resyncMs?: number;
  /**
   * The server is asked to end each watch after this many seconds (default 5), and the next one goes on from
   * where it ended. A watch that is silent `watchGraceMs` (default 2 s) longer is dead. Their sum is the bound
   * within which a silent watch is noticed: see docs/adr/0002.
   */
  readonly watchSeconds?: number;
  readonly watchGraceMs?: number;
  /** Pause after failures: from about 200 ms up to this, default 4 s, with jitter. */
  readonly maxBackoffMs?: number;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly logger?: Logger;
}

/** Told synchronously, in order; an error or a rejection is logged and stops nothing. */
export type ChangeHandler<T extends KubeObject> = (change: Change<T>) => void | Promise<void>;

/** A local copy of one kind's objects, kept equal to the API server's. */
export interface Informer<T extends KubeObject = KubeObject> {
  readonly kind: ResourceKind<T>;
  /** Begins to list and watch; a second call does nothing. */
  start(): void;
  /** Resolves when no request is open any more; no handler is called after the call. Final. */
  stop(): Promise<void>;
  /** The object of `namespace/name`, as last seen: may be stale, so read again before what cannot be undone. */
  get(key: string): T | undefined;
  list(filter?: (object: T) => boolean): readonly T[];
  /** True once a complete list was taken. */
  readonly hasSynced: boolean;
  /** Rejects with the signal's reason, or when the informer is stopped before. */
  waitForSync(signal?: AbortSignal): Promise<void>;
  /** Milliseconds since the API server last answered for this kind; Infinity before the first time. */
  stalenessMs(): number;
  /** Present objects are told as Added at once. Returns the function that ends it. */
  subscribe(handler: ChangeHandler<T>): () => void;
}

const DEFAULT_PAGE = 500;
/** A page may take this long at first; twice as long after each failure, up to a minute. */
const PAGE_TIMEOUT_MS = 10_000;
/** A server's own wish for a pause is honoured up to this. */
const LONGEST_WISH_MS = 30_000;
/** So many lists in a row from before what we have seen mean that the server's history went back (a restored etcd). */
const BACKWARD_LISTS = 3;

export function createInformer<T extends KubeObject>(options: InformerOptions<T>): Informer<T> {
  const { transport, kind, namespace } = options;
  const clock = options.clock ?? systemClock;
  const random = options.random ?? Math.random;
  const logger = options.logger ?? silentLogger;
  const resyncMs = options.resyncMs ?? 600_000;
  const watchSeconds = options.watchSeconds ?? 5;
  const watchGraceMs = options.watchGraceMs ?? 2_000;
  const maxBackoffMs = options.maxBackoffMs ?? 4_000;

  const pace = transport.paceOf(kindId(kind));
  const what = describeRef(kind, { namespace });
  const selector = options.labelSelector === undefined ? {} : { labelSelector: options.labelSelector };
  const scope = { ...(namespace === undefined ? {} : { namespace }), ...selector };

  const cache = new ObjectCache<T>();
  const handlers = new Set<ChangeHandler<T>>();
  const stopping = new AbortController();
  const synced = Promise.withResolvers<void>();
  synced.promise.catch(() => undefined); // nobody may be waiting
  let running: Promise<void> | undefined;
  let hasSynced = false;
  let lastContact: number | undefined;
  let lastListAt = 0;
  /** Newest version seen in a list or a watch. */
  let newest: string | undefined;
  let backwardLists = 0;
  let failures = 0;
  let pageSize = DEFAULT_PAGE;

  async function run(): Promise<void> {
    /** Where the next watch goes on; undefined when only a list can tell. */
    let from: string | undefined;
    while (!stopping.signal.aborted) {
      try {
        if (from === undefined || resyncDue()) from = await relist();
        const startedAt = clock.monotonicMs();
        const end = await watch(from);
        from = end.version;
        if (end.lines > 0 || clock.monotonicMs() - startedAt > 1_000) failures = 0;
        // Something in between ends watches at once: go on, but not in a tight loop.
        else await sleep(clock, backoffMs(failures++, 200, maxBackoffMs, random), stopping.signal);
      } catch (error) {
        if (stopping.signal.aborted) break;
        from = undefined;
        if (isKubeError(error, 'ResponseTooLarge')) pageSize = Math.max(1, Math.floor(pageSize / 4));
        const wish = Math.min(isKubeError(error) ? (error.retryAfterMs ?? 0) : 0, LONGEST_WISH_MS);
        const pauseMs = Math.round(Math.max(wish, backoffMs(failures++, 200, maxBackoffMs, random)));
        logger.warn(
          { kind: kind.kind, failures, pauseMs, ...errorFields(error) },
          'watch failed, listing again',
        );
        await sleep(clock, pauseMs, stopping.signal);
      }
    }
  }

  function resyncDue(): boolean {
    return resyncMs > 0 && clock.monotonicMs() - lastListAt >= resyncMs;
  }

  /** Lists all pages, makes the cache equal to them, tells what changed. Returns the list's version. */
  async function relist(): Promise<string> {
    const resync = hasSynced && resyncDue();
    const { items, version } = await listAll();
    stopping.signal.throwIfAborted();
    const changes = settle(items, version);
    lastListAt = clock.monotonicMs();
    const told = new Set(changes.map((change) => change.key));
    for (const change of changes) tell(change);
    if (!hasSynced) {
      hasSynced = true;
      synced.resolve();
    }
    if (resync) {
      for (const [key, object] of cache.entries()) if (!told.has(key)) tell({ type: 'Resync', key, object });
    }
    return version;
  }

  async function listAll(): Promise<{ readonly items: readonly T[]; readonly version: string }> {
    const where = `LIST ${what}`;
    const items: T[] = [];
    for (let next: string | undefined; ; ) {
      await pace.next(stopping.signal);
      stopping.signal.throwIfAborted();
      const answer = await transport.json({
        ...listRequest(kind, {
          ...scope,
          limit: pageSize,
          ...(next === undefined ? {} : { continue: next }),
        }),
        where,
        signal: stopping.signal,
        timeoutMs: Math.min(60_000, PAGE_TIMEOUT_MS * 2 ** Math.min(failures, 3)),
      });
      contact();
      const page = asList(kind, answer, where);
      items.push(...page.items);
      if (page.continue === undefined) return { items, version: page.resourceVersion };
      next = page.continue;
    }
  }

  /** A list without resourceVersion is the present state: one that is older than what we saw needs an explanation. */
  function settle(items: readonly T[], version: string): readonly Change<T>[] {
    if ((compareVersions(version, newest) ?? 0) >= 0) {
      backwardLists = 0;
      newest = version;
      return cache.replace(items);
    }
    backwardLists += 1;
    if (backwardLists < BACKWARD_LISTS) {
      throw new KubeError({
        where: `LIST ${what}`,
        reason: 'InvalidResponse',
        message: `the list is of version ${version}, ${newest} was seen before`,
      });
    }
    logger.warn({ kind: kind.kind, version, newest }, 'the API server went back in time, starting over');
    backwardLists = 0;
    newest = version;
    return [...cache.clear(), ...cache.replace(items)];
  }

  /** One watch until the server ends it. Throws KubeError when it breaks, is silent too long or is refused. */
  async function watch(from: string): Promise<{ readonly version: string; readonly lines: number }> {
    await pace.next(stopping.signal);
    stopping.signal.throwIfAborted();
    const where = `WATCH ${what}`;
    let version = from;
    let lines = 0;
    const stream = transport.lines({
      method: 'GET',
      path: collectionPath(kind, namespace),
      query: {
        ...selector,
        watch: 'true',
        allowWatchBookmarks: 'true',
        resourceVersion: from,
        timeoutSeconds: String(watchSeconds),
      },
      where,
      signal: stopping.signal,
      timeoutMs: watchSeconds * 1000 + watchGraceMs,
    });
    for await (const line of stream) {
      if (stopping.signal.aborted) break;
      contact();
      lines += 1;
      version = take(parseEvent(line, where), where) ?? version;
    }
    contact();
    return { version, lines };
  }

  /** Applies one event; its version, from where a next watch can go on. */
  function take(event: WatchEvent, where: string): string | undefined {
    if (event.type === 'ERROR') {
      const code =
        isRecord(event.object) && typeof event.object['code'] === 'number' ? event.object['code'] : 500;
      throw errorFromStatus({ where, status: code, body: event.object });
    }
    const object = asObject(kind, event.object, where);
    const version = object.metadata.resourceVersion;
    if ((compareVersions(version, newest) ?? 1) > 0) newest = version;
    if (event.type !== 'BOOKMARK') {
      const change = event.type === 'DELETED' ? cache.remove(object) : cache.put(object);
      if (change !== undefined) tell(change);
    }
    return version;
  }

  function contact(): void {
    lastContact = clock.monotonicMs();
  }

  function tell(change: Change<T>): void {
    for (const handler of handlers) call(handler, change);
  }

  function call(handler: ChangeHandler<T>, change: Change<T>): void {
    if (stopping.signal.aborted) return;
    const failed = (error: unknown) =>
      logger.error({ kind: kind.kind, key: change.key, ...errorFields(error) }, 'a change handler failed');
    try {
      handler(change)?.catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  return {
    kind,
    start() {
      if (stopping.signal.aborted) throw new Error(`informer of ${what}: it was stopped; make a new one`);
      running ??= run();
    },
    async stop() {
      stopping.abort(new Error(`informer of ${what} was stopped`));
      synced.reject(stopping.signal.reason);
      await running;
    },
    get: (key) => cache.get(key),
    list: (filter) => {
      const all = [...cache.values()];
      return filter ? all.filter(filter) : all;
    },
    get hasSynced() {
      return hasSynced;
    },
    waitForSync: (signal) => orAborted(synced.promise, signal),
    stalenessMs: () =>
      lastContact === undefined ? Number.POSITIVE_INFINITY : clock.monotonicMs() - lastContact,
    subscribe(handler) {
      handlers.add(handler);
      for (const [key, object] of cache.entries()) call(handler, { type: 'Added', key, object });
      return () => {
        handlers.delete(handler);
      };
    },
  };
}

interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: unknown;
}

const EVENT_TYPES: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']);

function parseEvent(line: string, where: string): WatchEvent {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch (cause) {
    throw new KubeError({ where, reason: 'InvalidResponse', message: 'a watch event is not JSON', cause });
  }
  if (!isWatchEvent(parsed)) {
    throw new KubeError({ where, reason: 'InvalidResponse', message: 'not a watch event' });
  }
  return parsed;
}

function isWatchEvent(value: unknown): value is WatchEvent {
  return isRecord(value) && EVENT_TYPES.has(value['type']) && 'object' in value;
}

async function orAborted(promise: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return promise;
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

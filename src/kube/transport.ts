import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import { type Clock, systemClock } from './clock.ts';
import type { Connection, ConnectionTls } from './config.ts';
import { errorFromStatus, KubeError } from './errors.ts';
import { LineTooLongError, splitLines } from './lines.ts';
import { createPace, type Pace } from './pace.ts';

/** A call that hangs is given up after this; API servers answer ordinary calls in well under a second. */
export const CALL_TIMEOUT_MS = 30_000;
/** Bound of an answer that is read whole: 500 objects of 64 KiB status fit. */
export const MAX_RESPONSE_BYTES = 48 * 1024 * 1024;
/** etcd refuses requests over 1.5 MiB; managedFields and JSON escapes can multiply that. */
export const MAX_LINE_BYTES = 8 * 1024 * 1024;
/** The promise is 5 list or watch requests a second per kind; the tenth on top is for jitter on the way. */
const PACE = { count: 5, windowMs: 1100 };

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface ApiRequest {
  readonly method: HttpMethod;
  /** Absolute path below the server's URL, `/api/v1/…`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  /** For messages, as `GET pods/ns/name`. */
  readonly where: string;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number;
  readonly maxBytes?: number;
}

/** HTTP to one API server: credentials on every call, every failure a KubeError, everything bounded. */
export interface Transport {
  readonly connection: Connection;
  /**
   * One call, its JSON answer parsed. Throws KubeError; when `signal` was aborted, the signal's reason.
   * Nothing is retried.
   */
  json(request: ApiRequest): Promise<unknown>;
  /**
   * An answer that goes on, line by line. Ends when the server ends it; throws KubeError when it breaks or when
   * `signal` is aborted. Leaving the loop closes the connection.
   */
  lines(request: ApiRequest): AsyncGenerator<string, void, void>;
  /** The pace of list and watch requests of one kind, shared by everyone who uses this transport. */
  paceOf(kindId: string): Pace;
  /** Ends all connections. */
  close(): Promise<void>;
}

export function createTransport(
  connection: Connection,
  options: { readonly clock?: Clock; readonly userAgent?: string } = {},
): Transport {
  const clock = options.clock ?? systemClock;
  const userAgent = options.userAgent ?? 'hummingbird-operator';
  const dispatchers = createDispatchers(connection);
  const paces = new Map<string, Pace>();

  async function open(request: ApiRequest, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const credentials = await connection.credentials();
    const prefix = connection.server.pathname.replace(/\/+$/, '');
    const response = await dispatchers.of(credentials.tls).request({
      origin: connection.server.origin,
      path: `${prefix}${request.path}${queryString(request.query)}`,
      method: request.method,
      headers: {
        ...credentials.headers,
        accept: request.accept ?? 'application/json',
        'user-agent': userAgent,
        ...(request.body === undefined ? {} : { 'content-type': request.contentType ?? 'application/json' }),
      },
      ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
      signal,
    });
    if (response.statusCode < 400) return response;
    const text = await readText(response.body, 256 * 1024, request.where);
    const retryAfter = response.headers['retry-after'];
    throw errorFromStatus({
      where: request.where,
      status: response.statusCode,
      body: parseOrText(text),
      retryAfterHeader: typeof retryAfter === 'string' ? retryAfter : undefined,
    });
  }

  return {
    connection,

    async json(request) {
      const timeoutMs = request.timeoutMs ?? CALL_TIMEOUT_MS;
      const deadline = withDeadline(request.signal, timeoutMs, clock);
      try {
        const response = await open(request, deadline.signal);
        const text = await readText(response.body, request.maxBytes ?? MAX_RESPONSE_BYTES, request.where);
        return parseJson(text, request.where);
      } catch (error) {
        // A silent server may be a dead path: what else waits in the pool would be as silent.
        if (deadline.timedOut()) dispatchers.renew();
        throw translate(error, request, timeoutMs, deadline.timedOut());
      } finally {
        deadline.clear();
      }
    },

    async *lines(request) {
      const timeoutMs = request.timeoutMs ?? CALL_TIMEOUT_MS;
      const deadline = withDeadline(request.signal, timeoutMs, clock);
      try {
        const response = await open(request, deadline.signal);
        yield* splitLines(response.body, request.maxBytes ?? MAX_LINE_BYTES);
      } catch (error) {
        if (deadline.timedOut()) dispatchers.renew();
        throw translate(error, request, timeoutMs, deadline.timedOut());
      } finally {
        deadline.clear();
        // Without this an abandoned answer would keep its socket until the server ends it.
        deadline.abandon();
      }
    },

    paceOf(kindId) {
      const known = paces.get(kindId);
      if (known) return known;
      const pace = createPace(clock, PACE.count, PACE.windowMs);
      paces.set(kindId, pace);
      return pace;
    },

    close: () => dispatchers.close(),
  };
}

/** One dispatcher per TLS material: a renewed client certificate gets new connections. */
function createDispatchers(connection: Connection) {
  let current: { readonly key: string; readonly dispatcher: Dispatcher } | undefined;
  const open = new Set<Dispatcher>();
  let closing: Promise<void> | undefined;
  const renew = () => {
    const old = current?.dispatcher;
    current = undefined;
    // Graceful: watches on the old connections go on until they end by themselves.
    old?.close().then(
      () => open.delete(old),
      () => open.delete(old),
    );
  };
  return {
    renew,
    of(tls: ConnectionTls): Dispatcher {
      if (closing) throw new Error('the connection to the API server was closed');
      const key = JSON.stringify(
        [tls.ca, tls.cert, tls.key, tls.servername, tls.rejectUnauthorized].map(String),
      );
      if (current?.key === key) return current.dispatcher;
      renew();
      const dispatcher = createDispatcher(connection, tls);
      open.add(dispatcher);
      current = { key, dispatcher };
      return dispatcher;
    },
    close(): Promise<void> {
      closing ??= Promise.all([...open].map((dispatcher) => dispatcher.destroy())).then(() => undefined);
      return closing;
    },
  };
}

function createDispatcher(connection: Connection, tls: ConnectionTls): Dispatcher {
  // Deadlines are ours (undici's own timers would end a quiet watch); connecting alone keeps one of its own.
  // HTTP/1.1: a connection per watch, so that ending one is closing a socket, and a dead one takes no other along.
  const common = { headersTimeout: 0, bodyTimeout: 0, allowH2: false };
  const connectOptions = { ...tls, timeout: 5_000, keepAlive: true, keepAliveInitialDelay: 15_000 };
  if (connection.proxyUrl === undefined) return new Agent({ ...common, connect: connectOptions });
  if (!/^https?:/.test(connection.proxyUrl)) {
    throw new Error(
      `kubeconfig: proxy-url ${connection.proxyUrl} is not supported; only http and https proxies are`,
    );
  }
  return new ProxyAgent({ ...common, uri: connection.proxyUrl, requestTls: connectOptions });
}

/** The caller's signal, a deadline and "nobody reads any more" as one signal. */
function withDeadline(outer: AbortSignal | undefined, timeoutMs: number, clock: Clock) {
  const abort = new AbortController();
  let timedOut = false;
  const cancel = clock.after(timeoutMs, () => {
    timedOut = true;
    abort.abort(new Error('deadline'));
  });
  const follow = () => abort.abort(outer?.reason);
  if (outer?.aborted) follow();
  else outer?.addEventListener('abort', follow, { once: true });
  return {
    signal: abort.signal,
    timedOut: () => timedOut,
    clear: () => {
      cancel();
      outer?.removeEventListener('abort', follow);
    },
    abandon: () => abort.abort(new Error('no longer read')),
  };
}

function queryString(query: ApiRequest['query']): string {
  const set = Object.entries(query ?? {}).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
  );
  return set.length === 0 ? '' : `?${new URLSearchParams(set)}`;
}

async function readText(body: AsyncIterable<Uint8Array>, maxBytes: number, where: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) {
      // Leaving the loop destroys the body.
      throw new KubeError({
        where,
        reason: 'ResponseTooLarge',
        message: `the answer exceeds ${maxBytes} bytes`,
      });
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseJson(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new KubeError({ where, reason: 'InvalidResponse', message: 'the answer is not JSON', cause });
  }
}

function parseOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function translate(error: unknown, request: ApiRequest, timeoutMs: number, timedOut: boolean): unknown {
  if (error instanceof KubeError) return error;
  if (timedOut) {
    return new KubeError({
      where: request.where,
      reason: 'Timeout',
      message: `no complete answer within ${timeoutMs} ms`,
    });
  }
  if (request.signal?.aborted) return request.signal.reason;
  if (error instanceof LineTooLongError) {
    return new KubeError({
      where: request.where,
      reason: 'ResponseTooLarge',
      message: error.message,
      cause: error,
    });
  }
  const message = error instanceof Error ? error.message || String(error) : String(error);
  return new KubeError({ where: request.where, reason: 'Unreachable', message, cause: error });
}

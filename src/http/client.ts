import { readBounded, readDecoded } from './body.ts';
import { type HttpClock, systemHttpClock } from './clock.ts';
import { Deadline } from './deadline.ts';
import type { Destinations } from './destinations.ts';
import { createConnections, type Resolve } from './dispatcher.ts';
import { HttpError } from './errors.ts';
import { type Exchange, send } from './exchange.ts';
import { noProxies, type Proxies } from './proxies.ts';
import { createRedactor, type Redactor } from './redaction.ts';
import { backoffMs, DEFAULT_RETRY, type RetryPolicy } from './retry.ts';
import type { TlsIdentity } from './tls.ts';

export type { Destinations } from './destinations.ts';
export { HttpError } from './errors.ts';
export type { RetryPolicy } from './retry.ts';
export type { TlsIdentity } from './tls.ts';

export interface HttpRequest {
  /** Default GET. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly url: string | URL;
  /** For a URL that comes from data: where it and its redirects may lead. Beyond: `RefusedAddress`, `RefusedRedirect`. */
  readonly within?: Destinations;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: the system's authorities and no certificate of our own. A credential: another origin does not get it. */
  readonly tls?: TlsIdentity;
  readonly body?: string | Uint8Array;
  readonly signal?: AbortSignal;
  /** Per attempt. `request`: until the last byte; `stream`: until the headers, then between two chunks. */
  readonly timeoutMs?: number;
  /** Decoded bytes of the answer; beyond it the request fails (`TooLarge`). Default: the client's limit. */
  readonly maxBytes?: number;
  /** `false` makes one attempt. Only GET, HEAD and requests marked `idempotent` are repeated at all. */
  readonly retry?: Partial<RetryPolicy> | false;
  /** Says that a repeated POST, PUT, PATCH or DELETE does no harm. */
  readonly idempotent?: boolean;
}

export interface HttpResponse {
  readonly status: number;
  /** Names in lower case; repeated headers joined with `, `. */
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Uint8Array;
  text(): string;
  /** Throws `HttpError` (`NotJson`) when the body is not JSON. */
  json(): unknown;
}

export interface HttpStream {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Decoded; to be read once, to its end or abandoned with `return()`. Throws `HttpError` when it breaks off. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** Throws `HttpError` for every answer outside 2xx; an abort rejects with the signal's reason. */
export interface HttpClient {
  request(request: HttpRequest): Promise<HttpResponse>;
  stream(request: HttpRequest): Promise<HttpStream>;
  close(): Promise<void>;
}

export interface HttpClientOptions {
  /** Default: none. */
  readonly proxies?: Proxies;
  /** Default: the system's. */
  readonly resolve?: Resolve;
  readonly clock?: HttpClock;
  readonly redactor?: Redactor;
  readonly userAgent?: string;
  readonly limits?: {
    /** Default 30 s. */
    readonly timeoutMs?: number;
    /** Default 16 MiB. */
    readonly maxBytes?: number;
    readonly retry?: Partial<RetryPolicy>;
  };
}

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_MAX_BYTES = 16 * 1024 * 1024;

export function createHttpClient(options: HttpClientOptions = {}): HttpClient {
  const connections = createConnections({
    proxies: options.proxies ?? noProxies,
    ...(options.resolve && { resolve: options.resolve }),
  });
  const clock = options.clock ?? systemHttpClock;
  const redactor = options.redactor ?? createRedactor();
  const context = {
    connections,
    clock,
    redactor,
    userAgent: options.userAgent ?? 'hummingbird-operator',
  };

  const retrying = <T>(request: HttpRequest, attempt: () => Promise<T>): Promise<T> =>
    withRetries(request, { ...DEFAULT_RETRY, ...options.limits?.retry }, clock, attempt);
  const exchange = (request: HttpRequest, signal: AbortSignal): Promise<Exchange> =>
    send(context, request, signal);
  const timeoutOf = (request: HttpRequest) =>
    request.timeoutMs ?? options.limits?.timeoutMs ?? DEFAULT_TIMEOUT_MS;

  return {
    request: (request) =>
      retrying(request, async () => {
        const deadline = new Deadline(timeoutOf(request), 'its time was over', request.signal);
        try {
          const answer = await exchange(request, deadline.signal);
          const maxBytes = request.maxBytes ?? options.limits?.maxBytes ?? DEFAULT_MAX_BYTES;
          return response(answer, await readBounded(answer, maxBytes));
        } finally {
          deadline.end();
        }
      }),
    stream: (request) =>
      retrying(request, async () => {
        const ms = timeoutOf(request);
        const idle = new Deadline(ms, `nothing received for ${ms} ms`, request.signal);
        try {
          const answer = await exchange(request, idle.signal);
          const body = readDecoded(answer, request.maxBytes ?? Number.POSITIVE_INFINITY, idle);
          return { status: answer.status, headers: answer.headers, body };
        } catch (error) {
          idle.end();
          throw error;
        }
      }),
    close: () => connections.close(),
  };
}

async function withRetries<T>(
  request: HttpRequest,
  base: RetryPolicy,
  clock: HttpClock,
  attempt: () => Promise<T>,
): Promise<T> {
  const method = request.method ?? 'GET';
  const repeatable = method === 'GET' || method === 'HEAD' || request.idempotent === true;
  const policy = { ...base, ...(request.retry === false ? { attempts: 1 } : request.retry) };
  const attempts = repeatable ? policy.attempts : 1;
  for (let count = 1; ; count++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof HttpError) || !error.retryable || count >= attempts) throw error;
      if (error.retryAfterMs !== undefined && error.retryAfterMs > policy.maxRetryAfterMs) throw error;
      const pause = Math.max(error.retryAfterMs ?? 0, backoffMs(policy, count, clock.random()));
      await clock.sleep(pause, request.signal);
    }
  }
}

const UTF8 = new TextDecoder();

function response(answer: Exchange, bytes: Uint8Array): HttpResponse {
  const text = () => UTF8.decode(bytes);
  return {
    status: answer.status,
    headers: answer.headers,
    bytes,
    text,
    json() {
      try {
        return JSON.parse(text());
      } catch (cause) {
        const what = `the answer is not JSON${insteadOfJson(answer.headers, text())}`;
        throw answer.error(what, { code: 'NotJson', retryable: false, cause });
      }
    },
  };
}

/** What stands there instead, in words that lead on. Nothing of the text itself: it may be anybody's page. */
function insteadOfJson(headers: Readonly<Record<string, string>>, text: string): string {
  const start = text.trimStart();
  if (start === '') return ': it is empty';
  if (start.startsWith('<'))
    return ' but a page, such as a login of a proxy or of single sign-on shows; correct the URL, or what stands before it';
  if (start.startsWith('{') || start.startsWith('['))
    return `: it is cut off or damaged (${text.length} characters)`;
  return ` but ${headers['content-type'] ?? 'of no type'}`;
}

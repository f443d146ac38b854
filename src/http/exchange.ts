import type { Readable } from 'node:stream';
import { errors as undiciErrors } from 'undici';
import { outermost, type Reach, refusedHost } from './addresses.ts';
import type { HttpRequest } from './client.ts';
import type { HttpClock } from './clock.ts';
import { outside } from './destinations.ts';
import { type Connections, RefusedAddressError } from './dispatcher.ts';
import { HttpError, type HttpErrorOptions } from './errors.ts';
import { type Redactor, shownUrl } from './redaction.ts';
import { isRetryableStatus, parseRetryAfter } from './retry.ts';
import type { TlsIdentity } from './tls.ts';

export interface ExchangeContext {
  readonly connections: Connections;
  readonly clock: HttpClock;
  readonly redactor: Redactor;
  readonly userAgent: string;
}

/** Head of a 2xx answer whose body has not been read yet. */
export interface Exchange {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readable;
  /** An error that names this request. */
  error(what: string, options: Pick<HttpErrorOptions, 'code' | 'retryable' | 'cause'>): HttpError;
  /** What a failure while reading the body means: the caller's abort is handed on, the rest is an HttpError. */
  explain(error: unknown): unknown;
}

const MAX_REDIRECTS = 3;
/** Google's refusals list each quota that was exceeded before the wait that they ask for. */
const EXCERPT_BYTES = 8192;
/** Kept when a redirect leads to another origin: everything else may be a credential. */
const SAFE_HEADERS = new Set(['accept', 'accept-language', 'range', 'user-agent']);

/**
 * One attempt: connection, redirects of reads, refusal of everything outside 2xx. A redirect to another origin takes
 * no credentials along and leads no further inside than where it came from. `signal` is the caller's and the deadline's.
 */
export async function send(
  context: ExchangeContext,
  request: HttpRequest,
  signal: AbortSignal,
): Promise<Exchange> {
  const { within } = request;
  let url = firstUrl(context, request);
  let reach: Reach = within === undefined ? 'Loopback' : (within.reach ?? 'Public');
  let headers: Record<string, string> = { 'user-agent': context.userAgent, ...lowerCased(request.headers) };
  let { tls } = request;
  for (let hop = 0; ; hop++) {
    const answer = await sendOnce(context, request, { url, reach, headers, tls }, signal);
    const location = answer.headers['location'];
    if (answer.status < 300 || answer.status >= 400 || location === undefined)
      return settled(context, answer);
    discard(answer.body);
    const next = URL.canParse(location, url.href) ? new URL(location, url.href) : undefined;
    const refusal =
      next === undefined ? 'redirected to what is no URL' : refuseRedirect(request, url, next, hop);
    if (next === undefined || refusal !== undefined)
      throw answer.error(refusal ?? '', { code: 'RefusedRedirect', retryable: false });
    if (next.origin !== url.origin) {
      headers = Object.fromEntries(Object.entries(headers).filter(([name]) => SAFE_HEADERS.has(name)));
      tls = undefined;
      reach = outermost(reach, context.connections.reachOf(url));
    }
    url = next;
  }
}

function firstUrl(context: ExchangeContext, request: HttpRequest): URL {
  const method = request.method ?? 'GET';
  const text = String(request.url);
  const why = request.within === undefined ? undefined : outside(text, request.within);
  if (why === undefined) return new URL(request.url);
  const url = URL.canParse(text) ? shownUrl(new URL(text), context.redactor) : 'a URL';
  throw new HttpError(`${method} ${url}: ${why}`, { method, url, code: 'RefusedAddress', retryable: false });
}

function refuseRedirect(request: HttpRequest, from: URL, to: URL, hop: number): string | undefined {
  const method = request.method ?? 'GET';
  if (method !== 'GET' && method !== 'HEAD')
    return 'redirected, which is followed for reads only; use the final address';
  if (hop >= MAX_REDIRECTS) return `redirected more than ${MAX_REDIRECTS} times`;
  if (to.protocol !== 'https:' && to.protocol !== from.protocol)
    return `redirected to ${to.protocol}//, refused`;
  if (to.username !== '' || to.password !== '') return 'redirected to a URL that names a user, refused';
  const why = request.within === undefined ? undefined : outside(to.href, request.within);
  return why === undefined ? undefined : `redirected to ${to.origin}: ${why}`;
}

interface Hop {
  readonly url: URL;
  readonly reach: Reach;
  readonly headers: Record<string, string>;
  readonly tls: TlsIdentity | undefined;
}

async function sendOnce(
  context: ExchangeContext,
  request: HttpRequest,
  { url, reach, headers, tls }: Hop,
  signal: AbortSignal,
): Promise<Exchange> {
  const method = request.method ?? 'GET';
  const error: Exchange['error'] = (what, options) => {
    const shown = shownUrl(url, context.redactor);
    return new HttpError(`${method} ${shown}: ${what}`, { method, url: shown, ...options });
  };
  const explain = (cause: unknown): unknown => explained(cause, request.signal, signal, error);

  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw error('only http and https are spoken', { code: 'RefusedAddress', retryable: false });
  }
  const refused = refusedHost(url, reach);
  if (refused !== undefined) throw error(refused, { code: 'RefusedAddress', retryable: false });

  try {
    const answer = await context.connections.dispatcherFor(url, reach, tls).request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method,
      headers,
      body: request.body ?? null,
      signal,
    });
    return { status: answer.statusCode, headers: joined(answer.headers), body: answer.body, error, explain };
  } catch (cause) {
    throw explain(cause);
  }
}

/** Hands a 2xx answer on; turns any other into an HttpError that carries the start of its body. */
async function settled(context: ExchangeContext, answer: Exchange): Promise<Exchange> {
  if (answer.status >= 200 && answer.status < 300) return answer;
  const excerpt = context.redactor.redact(await readExcerpt(answer.body));
  const retryAfterMs = parseRetryAfter(answer.headers['retry-after'], context.clock.now());
  const base = answer.error(`answered ${answer.status}${excerpt === '' ? '' : `: ${oneLine(excerpt)}`}`, {
    retryable: isRetryableStatus(answer.status),
  });
  throw new HttpError(base.message, {
    method: base.method,
    url: base.url,
    status: answer.status,
    retryable: base.retryable,
    bodyExcerpt: excerpt,
    ...(answer.headers['www-authenticate'] !== undefined && {
      challenge: answer.headers['www-authenticate'],
    }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

function explained(
  cause: unknown,
  caller: AbortSignal | undefined,
  timeout: AbortSignal,
  error: Exchange['error'],
): unknown {
  if (cause instanceof HttpError) return cause;
  if (caller?.aborted) return caller.reason;
  if (timeout.aborted) {
    const why = timeout.reason instanceof Error ? timeout.reason.message : 'deadline passed';
    return error(`no complete answer in time (${why})`, { code: 'Timeout', retryable: true, cause });
  }
  if (cause instanceof RefusedAddressError) {
    return error(cause.message, { code: 'RefusedAddress', retryable: false, cause });
  }
  const proxyStatus = cause instanceof Error ? PROXY_ANSWER.exec(cause.message)?.[1] : undefined;
  if (proxyStatus !== undefined) {
    const hint =
      proxyStatus === '407'
        ? 'put its user and password into HTTPS_PROXY'
        : 'correct its rules, HTTPS_PROXY or NO_PROXY';
    return error(`the proxy answered ${proxyStatus}; ${hint}`, {
      code: 'Connection',
      retryable: Number(proxyStatus) >= 500,
      cause,
    });
  }
  const what = cause instanceof Error ? describe(cause) : String(cause);
  const brokenOff =
    cause instanceof undiciErrors.SocketError ||
    cause instanceof undiciErrors.RequestAbortedError ||
    isZlibError(cause);
  return error(`${brokenOff ? 'the connection broke off' : 'no connection'} (${what})`, {
    code: brokenOff ? 'Interrupted' : 'Connection',
    retryable: true,
    cause,
  });
}

/** How undici words a proxy's refusal of a tunnel, and of a plain request without a password. */
const PROXY_ANSWER = /^Proxy (?:response|Authentication Required) \((\d{3})\)/;

/** Nobody that this process knows has signed the server's certificate. */
const UNKNOWN_AUTHORITY = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** A compressed body that is cut short or damaged. */
function isZlibError(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && String(cause.code).startsWith('Z_');
}

function describe(error: Error): string {
  if ('code' in error && UNKNOWN_AUTHORITY.has(String(error.code)))
    return `${error.message}; for a certificate of your own authority name its file in NODE_EXTRA_CA_CERTS`;
  // A connect that failed for every address of a name is an AggregateError with an empty message.
  if (error instanceof AggregateError && error.message === '') {
    return error.errors.map((one) => (one instanceof Error ? one.message : String(one))).join('; ');
  }
  return error.message;
}

async function readExcerpt(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      const bytes = Buffer.from(chunk);
      chunks.push(bytes);
      size += bytes.length;
      if (size >= EXCERPT_BYTES) break;
    }
  } catch {
    // The status says enough; a body that breaks off only shortens the excerpt.
  }
  return Buffer.concat(chunks).subarray(0, EXCERPT_BYTES).toString();
}

function discard(body: Readable): void {
  body.on('error', () => {});
  body.destroy();
}

const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim().slice(0, 300);

function lowerCased(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

function joined(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) result[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value;
  }
  return result;
}

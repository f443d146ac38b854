import type { FetchLike } from '@modelcontextprotocol/client';
import { type HttpClient, HttpError } from '../../http/client.ts';

export interface McpFetchOptions {
  readonly http: HttpClient;
  /** Longest silence while an answer is waited for or read. */
  readonly silenceMs: number;
  /** Decoded bytes of one answer. */
  readonly maxBytes: number;
}

/**
 * `fetch` as the SDK wants it, over our HTTP client: its addresses, proxies, redirects and bounds count here too. A
 * stream of events that ends or breaks off before its answer gets an error for one, so that nobody waits for it.
 */
export function mcpFetch({ http, silenceMs, maxBytes }: McpFetchOptions): FetchLike {
  return async (url, init = {}) => {
    const method = methodOf(init.method);
    // The stream of what nobody asked for; a server that offers none answers the same.
    if (method === undefined) return new Response(null, { status: 405 });
    const { body, signal } = init;
    if (typeof body !== 'string' && body !== undefined && body !== null)
      throw new TypeError('MCP messages are sent as text');
    try {
      const answer = await http.stream({
        ...{ method, url, maxBytes, timeoutMs: silenceMs, retry: false },
        headers: Object.fromEntries(new Headers(init.headers)),
        ...(body ? { body } : {}),
        ...(signal ? { signal } : {}),
      });
      // It has been decoded.
      const { 'content-encoding': _encoding, 'content-length': _length, ...headers } = answer.headers;
      const isEvents = headers['content-type']?.startsWith('text/event-stream') === true;
      const chunks = isEvents ? answered(answer.body, idOf(body)) : answer.body;
      const stream = BODILESS.has(answer.status) ? await emptied(chunks) : ReadableStream.from(chunks);
      return new Response(stream, { status: answer.status, headers });
    } catch (error) {
      if (!(error instanceof HttpError) || error.status === undefined) throw error;
      return new Response(BODILESS.has(error.status) ? null : (error.bodyExcerpt ?? ''), {
        status: error.status,
        headers: { 'content-type': 'application/json' },
      });
    }
  };
}

const BODILESS = new Set([204, 205, 304]);

const methodOf = (method: string | undefined): 'POST' | 'DELETE' | undefined =>
  method === 'POST' || method === 'DELETE' ? method : undefined;

async function emptied(chunks: AsyncIterable<Uint8Array>): Promise<null> {
  for await (const _ of chunks);
  return null;
}

type Id = string | number;

/** The id that the request in a body wants its answer under. */
function idOf(body: string | null | undefined): Id | undefined {
  const message: unknown = body ? JSON.parse(body) : undefined;
  if (typeof message !== 'object' || message === null || !('id' in message) || !('method' in message))
    return undefined;
  return typeof message.id === 'string' || typeof message.id === 'number' ? message.id : undefined;
}

/** A second answer to the same request is ignored. */
async function* answered(chunks: AsyncIterable<Uint8Array>, id: Id | undefined): AsyncGenerator<Uint8Array> {
  let why = 'the server ended its answer before it was complete';
  try {
    yield* chunks;
  } catch (error) {
    why = error instanceof Error ? error.message : String(error);
  }
  if (id === undefined) return;
  const lost = { jsonrpc: '2.0', id, error: { code: LOST_ANSWER, message: why } };
  yield Buffer.from(`\n\nevent: message\ndata: ${JSON.stringify(lost)}\n\n`);
}

/** In the range that JSON-RPC leaves to implementations. */
export const LOST_ANSWER = -32_050;

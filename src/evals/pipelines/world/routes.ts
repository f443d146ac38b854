import { type HttpClient, HttpError, type HttpRequest, type HttpResponse } from '../../../http/client.ts';

export interface Answered {
  readonly type: 'application/json' | 'text/plain' | 'application/xml';
  readonly bytes: Uint8Array;
}

export interface Route {
  readonly origin: string;
  /** As the URL has it: still encoded. */
  readonly path: string;
  /** Undefined: there is nothing of that query. */
  readonly answer: (query: URLSearchParams) => Answered | undefined;
}

export const json = (value: unknown): Answered => ({
  type: 'application/json',
  bytes: Buffer.from(JSON.stringify(value)),
});
export const text = (content: string): Answered => ({ type: 'text/plain', bytes: Buffer.from(content) });
export const xml = (content: string): Answered => ({ type: 'application/xml', bytes: Buffer.from(content) });

/**
 * A client that reaches nothing but the routes: what tools ask besides is not found, and written down in `strays`
 * (method and URL). No connection is ever made.
 */
export function routedHttp(routes: readonly Route[]): {
  readonly http: HttpClient;
  readonly strays: readonly string[];
} {
  const known = new Map(routes.map((route) => [`${route.origin}${route.path}`, route]));
  const strays: string[] = [];
  const find = ({ method = 'GET', url, signal }: HttpRequest): Answered => {
    signal?.throwIfAborted();
    const { origin, pathname, searchParams, href } = new URL(url);
    const found = method === 'GET' ? known.get(`${origin}${pathname}`)?.answer(searchParams) : undefined;
    if (found !== undefined) return found;
    strays.push(`${method} ${href}`);
    throw new HttpError(`${method} ${origin}${pathname}: 404`, {
      ...{ method, url: `${origin}${pathname}`, status: 404, retryable: false },
    });
  };
  const http: HttpClient = {
    async request(request) {
      return response(find(request));
    },
    async stream(request) {
      const { type, bytes } = find(request);
      async function* body(): AsyncGenerator<Uint8Array> {
        if (bytes.length > 0) yield bytes;
      }
      return { status: 200, headers: { 'content-type': type }, body: body() };
    },
    async close() {},
  };
  return { http, strays };
}

function response({ type, bytes }: Answered): HttpResponse {
  const decoded = () => new TextDecoder().decode(bytes);
  return {
    status: 200,
    headers: { 'content-type': type },
    bytes,
    text: decoded,
    json: (): unknown => JSON.parse(decoded()),
  };
}

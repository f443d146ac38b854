import { type HttpClient, HttpError } from '../../../http/client.ts';

/**
 * `fetch` on the one HTTP client, for google-auth-library's token requests: they obey the same limits, address
 * policy and redaction as everything else. Covers what such requests use: a small body and a small answer. The
 * library's metadata and federation clients do not take it and ask by themselves.
 */
export function fetchThrough(http: HttpClient): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const body = request.body === null ? undefined : new Uint8Array(await request.arrayBuffer());
    try {
      const answer = await http.request({
        method: methodOf(request.method),
        url: request.url,
        headers: Object.fromEntries(request.headers),
        ...(body && { body }),
        signal: request.signal,
        retry: false,
      });
      return new Response(Buffer.from(answer.bytes), { status: answer.status, headers: answer.headers });
    } catch (error) {
      if (error instanceof HttpError && error.status !== undefined) return refusal(error, error.status);
      throw error;
    }
  };
}

function refusal(error: HttpError, status: number): Response {
  return new Response(error.bodyExcerpt ?? '', { status, headers: { 'content-type': 'application/json' } });
}

function methodOf(method: string): 'GET' | 'POST' {
  if (method === 'GET' || method === 'POST') return method;
  throw new Error(`Token requests use GET and POST only, not ${method}`);
}

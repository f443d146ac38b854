import { HttpError } from '../../http/client.ts';
import type { GitLabApi } from '../../http/gitlab.ts';
import type { Query } from '../../http/gitlab-pages.ts';

/** Bytes of GitLab's that are no JSON. Throws `HttpError` for a refusal, and for a page that stands in their place. */
export async function rawBody(
  api: GitLabApi,
  path: string,
  query: Query,
  signal?: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const { body, headers } = await api.stream(path, query, signal);
  // GitLab sends what it keeps as plain text or as bytes, HTML files too.
  if (!/^text\/html\b/i.test(headers['content-type'] ?? '')) return body;
  for await (const _chunk of body) break;
  const url = `${api.baseUrl}/api/v4/${path}`;
  throw new HttpError(
    `GET ${url}: the answer is a page, such as a login of a proxy or of single sign-on shows`,
    { method: 'GET', url, retryable: false },
  );
}

/** A body of which everything counts that came before it broke off. */
export interface Kept {
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Those that came so far. */
  bytes(): number;
  /** Why the end is missing, once `chunks` has ended. */
  missing(): string | undefined;
}

/** `what` opens the sentence that says what is missing: `The log`. */
export function keptOnFailure(body: AsyncIterable<Uint8Array>, what: string): Kept {
  let bytes = 0;
  let missing: string | undefined;
  async function* chunks(): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of body) {
        bytes += chunk.length;
        yield chunk;
      }
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      missing = `${what} broke off after ${bytes} bytes (${error.message}); the rest is missing.`;
    }
  }
  return { chunks: chunks(), bytes: () => bytes, missing: () => missing };
}

import { z } from 'zod';
import { type HttpClient, HttpError, type HttpResponse } from './client.ts';

export type Query = Readonly<Record<string, unknown>>;

/** 100 rows a page: a list beyond this many pages is a loop, or nothing that anybody wants in full. */
const MAX_PAGES = 2_000;

const Rows = z.array(z.unknown());

export function withQuery(url: string, query: Query = {}): string {
  const result = new URL(url);
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue;
    if (Array.isArray(value)) for (const one of value) result.searchParams.append(`${name}[]`, String(one));
    else result.searchParams.set(name, String(value));
  }
  return result.href;
}

/**
 * Follows the `next` link as it stands (keyset pages carry nothing else), else `x-next-page`. Totals are never
 * asked: GitLab leaves them out for lists of more than 10,000 rows.
 */
export async function* pages(options: {
  readonly http: HttpClient;
  readonly headers: Readonly<Record<string, string>>;
  readonly first: string;
  readonly signal?: AbortSignal;
}): AsyncGenerator<readonly unknown[]> {
  const seen = new Set<string>();
  let url: string | undefined = options.first;
  while (url !== undefined) {
    if (seen.has(url) || seen.size >= MAX_PAGES) throw endless(url, seen.size);
    seen.add(url);
    const answer: HttpResponse = await options.http.request({
      url,
      headers: { accept: 'application/json', ...options.headers },
      ...(options.signal ? { signal: options.signal } : {}),
    });
    const rows = Rows.safeParse(answer.json());
    if (!rows.success) throw pageError(url, 'expected a list; is this the address of a GitLab API?');
    yield rows.data;
    url = nextPage(url, answer.headers);
  }
}

function nextPage(current: string, headers: Readonly<Record<string, string>>): string | undefined {
  const link = nextLink(headers['link']);
  const next = link !== undefined && URL.canParse(link, current) ? new URL(link, current) : undefined;
  // The token travels with the request, so a link to another origin (a GitLab that does not know its own
  // external address) is not followed.
  if (link !== undefined && next?.origin === new URL(current).origin)
    return URL.canParse(link) ? link : next.href;
  const page = headers['x-next-page']?.trim();
  if (page !== undefined && /^\d+$/.test(page)) return withQuery(current, { page });
  if (link === undefined) return undefined;
  throw pageError(
    current,
    next === undefined
      ? 'its link to the next page is no URL'
      : `its next page is at another origin (${next.origin}); correct the GitLab URL`,
  );
}

function nextLink(header: string | undefined): string | undefined {
  for (const [, url, parameters] of (header ?? '').matchAll(/<([^>]*)>([^<]*)/g)) {
    if (/;\s*rel="?next"?/i.test(parameters ?? '')) return url;
  }
  return undefined;
}

function pageError(url: string, what: string): HttpError {
  const { origin, pathname } = new URL(url);
  return new HttpError(`GET ${origin}${pathname}: ${what}`, {
    method: 'GET',
    url: origin + pathname,
    retryable: false,
  });
}

const endless = (url: string, count: number) => pageError(url, `the list does not end (${count} pages read)`);

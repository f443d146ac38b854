import { HttpError } from '../../http/client.ts';
import type { KubeApi } from './access.ts';
import { JsonError, ListReader } from './json/list-reader.ts';

export interface Listing {
  /** Collection in the namespace: `/apis/tekton.dev/v1/namespaces/NS/pipelineruns`. */
  readonly path: string;
  readonly labelSelector: string;
  readonly signal: AbortSignal;
}

/** How reading ended, when it was not at the list's end. */
export interface Shortfall {
  /** One sentence: what is missing and why. */
  readonly message: string;
  /** The API answers nothing at all to us: another list need not be tried. */
  readonly silent: boolean;
}

/** What a listing says while it goes. */
export interface Reports {
  shortfall(shortfall: Shortfall): void;
}

/** Both APIs give so many without cutting; KubeArchive refuses more than 1,000. */
const PAGE_SIZE = '500';
/** 100,000 items: beyond, the server leads in circles. */
const MAX_PAGES = 200;
/** A page that breaks off is asked for once more; what comes twice is known by its uid. */
const ATTEMPTS = 2;

/**
 * The items of one list, page by page, each as JSON text. What has come is never lost: a failure is reported and ends
 * the items. A page may bring items of an earlier one again.
 */
export async function* listed(api: KubeApi, listing: Listing, reports: Reports): AsyncGenerator<Uint8Array> {
  const { path, labelSelector, signal } = listing;
  let token: string | undefined;
  let attempt = 1;
  let oversized = 0;
  const seen = new Set<string>();
  /** Of whole pages. */
  let read = 0;
  let expired = false;
  for (let pages = 0; ; ) {
    const reader = new ListReader();
    let onPage = 0;
    let begun = false;
    try {
      const query = { labelSelector, limit: PAGE_SIZE, ...(token === undefined ? {} : { continue: token }) };
      const { body } = await api.stream(path, query, signal);
      begun = true;
      for await (const chunk of body)
        for (const item of reader.push(chunk)) {
          onPage += 1;
          yield item;
        }
      const end = reader.end();
      oversized += end.oversized;
      pages += 1;
      read += onPage;
      attempt = 1;
      if (end.continueToken === undefined) break;
      token = end.continueToken;
      if (seen.has(token) || pages === MAX_PAGES) {
        reports.shortfall(brokenOff(api, read, `its pages do not end, ${pages} were read`));
        break;
      }
      seen.add(token);
    } catch (error) {
      if (!(error instanceof HttpError || error instanceof JsonError)) throw error;
      if (isExpired(error) && token !== undefined && !expired) {
        expired = true;
        token = freshToken(error);
        continue;
      }
      if (begun && attempt < ATTEMPTS) {
        attempt += 1;
        continue;
      }
      reports.shortfall(shortfallOf(api, path, read + onPage, begun, error));
      break;
    }
  }
  if (oversized > 0)
    reports.shortfall({
      message: `${oversized} items of ${api.name} were too large to be read.`,
      silent: false,
    });
}

const isExpired = (error: HttpError | JsonError): error is HttpError =>
  error instanceof HttpError && error.status === 410;

/**
 * The API server keeps the state that a token belongs to for some minutes. Its refusal carries a token that goes on
 * from the same place in today's state; without one the list is read again from its beginning.
 */
function freshToken({ bodyExcerpt = '' }: HttpError): string | undefined {
  return /"continue"\s*:\s*"([A-Za-z0-9+/=_-]+)"/.exec(bodyExcerpt)?.[1];
}

function shortfallOf(
  api: KubeApi,
  path: string,
  count: number,
  begun: boolean,
  error: HttpError | JsonError,
): Shortfall {
  if (error instanceof JsonError) return brokenOff(api, count, `${path}: ${error.message}`);
  if (begun || count > 0) return brokenOff(api, count, error.message);
  return { message: `${capitalised(api.name)} gave nothing (${error.message}).`, silent: true };
}

const brokenOff = (api: KubeApi, count: number, why: string): Shortfall => ({
  message: `The list of ${api.name} broke off after ${count} items (${why}); those after them are missing.`,
  silent: false,
});

const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

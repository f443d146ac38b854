import { HttpError } from '../../http/client.ts';
import type { KubeApi } from './access.ts';
import { type Captured, JsonError, type ListEnd, ListReader } from './json/list-reader.ts';

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

/** Both APIs give so many without cutting; KubeArchive refuses more than 1,000. */
const PAGE_SIZE = '500';
/** 100,000 items: beyond, the server leads in circles. */
const MAX_PAGES = 200;
/** A page that breaks off is asked for once more; what comes twice is known by its uid. */
const ATTEMPTS = 2;
/** The API server forgets a token after some minutes: a list that takes longer than three of them is not read here. */
const MAX_EXPIRIES = 3;

/**
 * The items of one list, page by page; each is to be used before the next. What has come is never lost: a failure is
 * reported and ends the items. A page may bring items of an earlier one again.
 */
export async function* listed(
  api: KubeApi,
  listing: Listing,
  report: (shortfall: Shortfall) => void,
): AsyncGenerator<Captured> {
  const place = new Place();
  while (!place.atEnd) {
    const reader = new ListReader();
    place.beginPage();
    try {
      const { body } = await api.stream(listing.path, queryOf(listing, place), listing.signal);
      place.begun = true;
      for await (const chunk of body)
        for (const item of reader.push(chunk)) {
          place.onPage += 1;
          yield item;
        }
      place.endPage(reader.end());
    } catch (error) {
      if (!(error instanceof HttpError || error instanceof JsonError)) throw error;
      if (place.mayGoOn(error)) continue;
      return report(shortfallOf(api, listing.path, place, error));
    }
  }
  if (place.endless)
    report(brokenOff(api, place.items, `its pages do not end, ${MAX_PAGES} at most are read`));
  if (place.oversized > 0)
    report({ message: `${place.oversized} items of ${api.name} were too large to be read.`, silent: false });
}

const queryOf = ({ labelSelector }: Listing, { token }: Place) => ({
  labelSelector,
  limit: PAGE_SIZE,
  ...(token === undefined ? {} : { continue: token }),
});

/** How far a list was read. */
class Place {
  /** Where the next page begins. */
  token: string | undefined;
  atEnd = false;
  endless = false;
  oversized = 0;
  /** The page's answer has come, whole or not. */
  begun = false;
  onPage = 0;
  #earlier = 0;
  #attempt = 1;
  #expiries = 0;
  readonly #tokens = new Set<string>();

  get items(): number {
    return this.#earlier + this.onPage;
  }

  beginPage(): void {
    this.begun = false;
    this.onPage = 0;
  }

  endPage({ continueToken, oversized }: ListEnd): void {
    this.#earlier += this.onPage;
    this.onPage = 0;
    this.#attempt = 1;
    this.oversized += oversized;
    this.token = continueToken;
    this.endless =
      continueToken !== undefined && (this.#tokens.has(continueToken) || this.#tokens.size === MAX_PAGES);
    this.atEnd = this.endless || continueToken === undefined;
    if (continueToken !== undefined) this.#tokens.add(continueToken);
  }

  /** Whether what failed is worth another request, and from where. */
  mayGoOn(error: HttpError | JsonError): boolean {
    if (isExpired(error) && this.token !== undefined && this.#expiries < MAX_EXPIRIES) {
      this.#expiries += 1;
      this.token = freshToken(error);
      if (this.token === undefined) this.#startAgain();
      return true;
    }
    if (!this.begun || this.#attempt === ATTEMPTS) return false;
    this.#attempt += 1;
    return true;
  }

  #startAgain(): void {
    this.#tokens.clear();
    this.#earlier = 0;
  }
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

function shortfallOf(api: KubeApi, path: string, place: Place, error: HttpError | JsonError): Shortfall {
  const { begun, items } = place;
  if (error instanceof JsonError) return brokenOff(api, items, `${path}: ${error.message}`);
  if (begun || items > 0) return brokenOff(api, items, error.message);
  return { message: `${capitalised(api.name)} gave nothing (${error.message}).`, silent: true };
}

const brokenOff = (api: KubeApi, count: number, why: string): Shortfall => ({
  message: `The list of ${api.name} broke off after ${count} items (${why}); those after them are missing.`,
  silent: false,
});

const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

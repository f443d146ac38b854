import { setImmediate } from 'node:timers/promises';
import { parse } from 'yaml';
import { z } from 'zod';
import { type ChartReference, ChartUnavailableError } from '../delivery/port.ts';
import { basic, type FetchedChart, type Fetching, named } from './fetching.ts';
import { itemsOf } from './index-lines.ts';
import { pickVersion } from './version-range.ts';

/** Large repositories have indexes of tens of megabytes. */
const MAX_INDEX_BYTES = 128 * 1024 * 1024;
const ITEMS_PER_TURN = 20;

const words = z.union([z.string(), z.number()]).transform(String);
const entry = z.object({
  version: words,
  urls: z.array(z.string()).default([]),
  digest: z.string().optional(),
});
type Entry = z.infer<typeof entry>;

/** A chart of a repository with an `index.yaml`. Throws `HttpError` and `ChartUnavailableError`. */
export async function fromIndex(reference: ChartReference, fetching: Fetching): Promise<FetchedChart> {
  const base = baseOf(reference);
  const { http, within, signal, maxBytes } = fetching;
  const indexUrl = new URL('index.yaml', base);
  const entries = await entriesOf(reference, indexUrl, fetching);
  const version = pickVersion(
    reference.version,
    entries.map((one) => one.version),
  );
  const found = entries.find((one) => one.version === version);
  if (found === undefined)
    throw new ChartUnavailableError(
      `${named(reference)} cannot be fetched: ${base.href} has ${entries.length} versions of ${reference.name}, and none that fits.`,
    );
  const [first] = found.urls;
  if (first === undefined || !URL.canParse(first, base.href))
    throw new ChartUnavailableError(
      `${named(reference)} cannot be fetched: its index says no address for ${found.version}.`,
    );
  const url = new URL(first, base);
  // A password goes to where it is for: the index may name any host.
  const own = url.origin === base.origin ? basic(fetching.login(url)) : {};
  const answer = await http.request({ url, within, headers: own, maxBytes, ...(signal && { signal }) });
  return { version: found.version, bytes: answer.bytes, sha256: sha256Of(found.digest) };
}

function baseOf(reference: ChartReference): URL {
  if (!URL.canParse(reference.repository))
    throw new ChartUnavailableError(
      `${named(reference)} cannot be fetched: ${reference.repository} is no address.`,
    );
  const url = new URL(reference.repository);
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}

/** Older indexes write the digest with its algorithm. */
const sha256Of = (digest: string | undefined): string | undefined =>
  /^(?:sha256:)?([0-9a-f]{64})$/i.exec(digest ?? '')?.[1]?.toLowerCase();

async function entriesOf(reference: ChartReference, url: URL, fetching: Fetching): Promise<readonly Entry[]> {
  const { http, within, login, signal } = fetching;
  const stream = await http.stream({
    url,
    within,
    headers: basic(login(url)),
    maxBytes: MAX_INDEX_BYTES,
    ...(signal && { signal }),
  });
  const items = await itemsOf(stream.body, reference);
  if (items === undefined)
    throw new ChartUnavailableError(
      `${named(reference)} cannot be fetched: ${url.href} does not know ${reference.name}, or is no index of charts.`,
    );
  const entries: Entry[] = [];
  for (const [at, item] of items.entries()) {
    // Reading thousands of versions takes seconds that others would miss.
    if (at % ITEMS_PER_TURN === 0) await setImmediate();
    const list = typeof item === 'string' ? yaml(item) : [item];
    // Entries that are damaged take only themselves out of the choice.
    const { success, data } = entry.safeParse(Array.isArray(list) ? list[0] : undefined);
    if (success) entries.push(data);
  }
  return entries;
}

function yaml(text: string): unknown {
  try {
    return parse(text, { logLevel: 'silent', uniqueKeys: false });
  } catch {
    return undefined;
  }
}

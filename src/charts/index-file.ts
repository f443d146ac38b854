import { parse } from 'yaml';
import { z } from 'zod';
import { type ChartReference, ChartUnavailableError } from '../delivery/port.ts';
import { basic, type FetchedChart, type Fetching, named } from './fetching.ts';
import { pickVersion } from './version-range.ts';

/** Large repositories have indexes of tens of megabytes. */
const MAX_INDEX_BYTES = 128 * 1024 * 1024;
/** What the index says of one chart; all else of it is passed over as it comes. */
const MAX_ENTRY_BYTES = 8 * 1024 * 1024;
/** Indexes of this size are read as a whole where their lines are not laid out as usual. */
const MAX_WHOLE_BYTES = 4 * 1024 * 1024;

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
  const text = await entryText(stream.body, reference);
  if (text === undefined)
    throw new ChartUnavailableError(
      `${named(reference)} cannot be fetched: ${url.href} does not know ${reference.name}.`,
    );
  const parsed = z.array(z.unknown()).safeParse(yaml(text));
  if (!parsed.success)
    throw new ChartUnavailableError(
      `${named(reference)} cannot be fetched: ${url.href} is no index of charts.`,
    );
  // Entries that are damaged take only themselves out of the choice.
  return parsed.data.flatMap((one) => {
    const { success, data } = entry.safeParse(one);
    return success ? [data] : [];
  });
}

function yaml(text: string): unknown {
  try {
    return parse(text, { logLevel: 'silent', uniqueKeys: false });
  } catch {
    return undefined;
  }
}

/**
 * The YAML list under `entries.NAME`, found line by line in the layout that helm writes: all other entries are
 * dropped as they come. A small index in any other layout (JSON, say) is read as a whole. Undefined: not there.
 */
export async function entryText(
  chunks: AsyncIterable<Uint8Array>,
  reference: ChartReference,
): Promise<string | undefined> {
  const finder = new EntryFinder(reference);
  const decoder = new TextDecoder();
  const whole: Uint8Array[] = [];
  let size = 0;
  let rest = '';
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size <= MAX_WHOLE_BYTES) whole.push(Buffer.from(chunk));
    else whole.length = 0;
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    // One line without an end is no index in lines.
    if (rest.length > MAX_ENTRY_BYTES) throw tooLarge(reference);
    for (const line of lines) if (finder.take(line)) return finder.text();
  }
  finder.take(rest);
  if (finder.found) return finder.text();
  if (size > MAX_WHOLE_BYTES) return undefined;
  const index = z
    .object({ entries: z.record(z.string(), z.unknown()) })
    .safeParse(yaml(Buffer.concat(whole).toString()));
  const list =
    index.success && Object.hasOwn(index.data.entries, reference.name)
      ? index.data.entries[reference.name]
      : undefined;
  return list === undefined ? undefined : JSON.stringify(list);
}

const tooLarge = (reference: ChartReference): ChartUnavailableError =>
  new ChartUnavailableError(
    `${named(reference)} cannot be fetched: what its index says of it has more than ${MAX_ENTRY_BYTES / 1024 / 1024} MiB.`,
  );

class EntryFinder {
  readonly #reference: ChartReference;
  readonly #lines: string[] = [];
  #size = 0;
  #inEntries = false;
  #indent: number | undefined;
  found = false;

  constructor(reference: ChartReference) {
    this.#reference = reference;
  }

  /** True when all of the entry was seen. */
  take(line: string): boolean {
    const content = line.replace(/\r$/, '');
    if (content.trim() === '' || content.trimStart().startsWith('#')) return false;
    const indent = content.length - content.trimStart().length;
    const isItem = content.trimStart().startsWith('-');
    if (this.found) {
      // Items may stand in the column of their key.
      if (indent > (this.#indent ?? 0) || (indent === this.#indent && isItem)) {
        this.#size += content.length;
        if (this.#size > MAX_ENTRY_BYTES) throw tooLarge(this.#reference);
        this.#lines.push(content);
        return false;
      }
      return true;
    }
    if (indent === 0 && !isItem) {
      this.#inEntries = /^["']?entries["']?\s*:\s*$/.test(content);
      this.#indent = undefined;
      return false;
    }
    if (!this.#inEntries) return false;
    this.#indent ??= indent;
    if (indent !== this.#indent || isItem) return false;
    const key = /^\s*(?:"([^"]+)"|'([^']+)'|([^\s"':]+))\s*:\s*$/.exec(content);
    this.found = (key?.[1] ?? key?.[2] ?? key?.[3]) === this.#reference.name;
    return false;
  }

  text(): string {
    return this.#lines.join('\n');
  }
}

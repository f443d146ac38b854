import { parse } from 'yaml';
import { z } from 'zod';
import { type ChartReference, ChartUnavailableError } from '../delivery/port.ts';
import { named } from './fetching.ts';

/** What the index says of one chart; all else of it is passed over as it comes. */
const MAX_ENTRY_BYTES = 8 * 1024 * 1024;
/** Indexes of this size are read as a whole where their lines are not laid out as usual: JSON, or else YAML. */
const MAX_JSON_BYTES = 4 * 1024 * 1024;
const MAX_YAML_BYTES = 512 * 1024;

const index = z.object({ entries: z.record(z.string(), z.unknown()) });

/**
 * The list under `entries.NAME`, found line by line in the layout that helm writes: each item as YAML of its own, all
 * other entries dropped as they come. A small index in any other layout is read as a whole, and its items are values.
 * Undefined: not there.
 */
export async function itemsOf(
  chunks: AsyncIterable<Uint8Array>,
  reference: ChartReference,
): Promise<readonly unknown[] | undefined> {
  const finder = new EntryFinder(reference);
  const decoder = new TextDecoder();
  const whole: Uint8Array[] = [];
  let size = 0;
  let rest = '';
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size <= MAX_JSON_BYTES) whole.push(Buffer.from(chunk));
    else whole.length = 0;
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    // One line without an end is no index in lines.
    if (rest.length > MAX_JSON_BYTES) throw tooLarge(reference);
    for (const line of lines) if (finder.take(line)) return finder.items();
  }
  finder.take(rest);
  const items = finder.items();
  return items.length > 0 ? items : inWhole(Buffer.concat(whole).toString(), reference.name);
}

function inWhole(text: string, name: string): readonly unknown[] | undefined {
  const read = index.safeParse(parsed(text));
  if (!read.success || !Object.hasOwn(read.data.entries, name)) return undefined;
  const list = read.data.entries[name];
  return Array.isArray(list) ? list : undefined;
}

function parsed(text: string): unknown {
  try {
    if (text.trimStart().startsWith('{')) return JSON.parse(text);
    return text.length > MAX_YAML_BYTES ? undefined : parse(text, { logLevel: 'silent', uniqueKeys: false });
  } catch {
    return undefined;
  }
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
  #found = false;

  constructor(reference: ChartReference) {
    this.#reference = reference;
  }

  /** True when all of the entry was seen. */
  take(line: string): boolean {
    const content = line.replace(/\r$/, '');
    if (content.trim() === '' || content.trimStart().startsWith('#')) return false;
    const indent = content.length - content.trimStart().length;
    const isItem = content.trimStart().startsWith('-');
    if (this.#found) {
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
    this.#found = (key?.[1] ?? key?.[2] ?? key?.[3]) === this.#reference.name;
    return false;
  }

  /** Lists inside of an item stand further in than the items. */
  items(): readonly string[] {
    const indent = /^ */.exec(this.#lines[0] ?? '')?.[0] ?? '';
    const items: string[][] = [];
    for (const line of this.#lines) {
      if (line.startsWith(`${indent}-`)) items.push([]);
      items.at(-1)?.push(line);
    }
    return items.map((lines) => lines.join('\n'));
  }
}

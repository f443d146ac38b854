import {
  type Alias,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isScalar,
  type Node,
  parseAllDocuments,
  type Scalar,
  visit,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import {
  type Around,
  collectionPlace,
  end,
  inside,
  isAddressable,
  joined,
  MERGE,
  nameOf,
  properties,
  spellings,
  step,
} from './around.ts';
import type { DuplicateKey, Leaf, LeafStyle, YamlLeaves, YamlReading } from './leaf.ts';
import { lineCounter } from './lines.ts';
import { pieces } from './pieces.ts';
import { isOneLine } from './text.ts';

/** Longer ones are texts, not settings. */
const MAX_VALUE_CHARS = 4096;
/** Deeper than anything that people write, and far from where the stack ends. */
const MAX_DEPTH = 100;

/** Some hundred lines: what a parser makes of them, a hundred times that, is gone before it is moved anywhere. */
const PIECE_CHARS = 16 * 1024;

// Keys that stand twice are found by the walk: the library compares each with each.
const OPTIONS = { prettyErrors: false, uniqueKeys: false, logLevel: 'silent' } as const;

/**
 * Every leaf of every document of a text from `decodeYaml`. Nothing is expanded, so that aliases cannot grow. Long
 * texts are read in pieces where that makes no difference.
 */
export function readLeaves(text: string, pieceChars = PIECE_CHARS): YamlReading {
  const lineAt = lineCounter(text);
  try {
    return inPieces(text, lineAt, pieceChars) ?? whole(text, lineAt);
  } catch (error) {
    // The library's own stack, where a text is made of nothing but brackets.
    if (error instanceof TooDeepError || error instanceof RangeError)
      return unreadable('is nested too deeply');
    throw error;
  }
}

function inPieces(text: string, lineAt: LineAt, pieceChars: number): YamlReading | undefined {
  const cuts = pieces(text, pieceChars);
  if (cuts === undefined) return undefined;
  const walk = new Walk(text, lineAt);
  for (const [start, end] of cuts) {
    const [document, ...more] = parseAllDocuments(text.slice(start, end), OPTIONS);
    const map = document?.contents;
    if (document === undefined || more.length > 0 || document.errors.length > 0) return undefined;
    if (!isMap(map) || map.flow === true || properties(map) !== '') return undefined;
    // Indented, it would not go on with the keys of the next piece.
    if (!/^$|[\n\ufeff]/.test(text.charAt(start + (map.range?.[0] ?? 0) - 1))) return undefined;
    walk.piece(map, start);
  }
  return walk.done();
}

function whole(text: string, lineAt: LineAt): YamlReading {
  const walk = new Walk(text, lineAt);
  for (const [index, document] of parseAllDocuments(text, OPTIONS).entries()) {
    if (document.errors.some(({ code }) => code === 'RESOURCE_EXHAUSTION')) throw new TooDeepError();
    const [fault] = document.errors;
    if (fault) return unreadable(`is not YAML: line ${lineAt(fault.pos[0])}: ${firstLine(fault.message)}`);
    walk.document(document.contents, index);
  }
  return walk.done();
}

type LineAt = (offset: number) => number;

const unreadable = (reason: string): YamlReading => ({ kind: 'Unreadable', reason });

const firstLine = (message: string): string => (message.split('\n', 1)[0] ?? '').slice(0, 200);

class TooDeepError extends Error {}

type Draft = Leaf & { bar: string | undefined };

/** One key of a mapping and the leaves below it. */
interface Entry {
  readonly name: string | undefined;
  readonly spellings: readonly string[];
  readonly line: number;
  readonly from: number;
  readonly to: number;
}

class Walk implements YamlLeaves {
  readonly kind = 'Leaves';
  readonly leaves: Draft[] = [];
  readonly collections: string[] = [];
  readonly duplicates: DuplicateKey[] = [];
  readonly merging = new Set<string>();
  readonly #text: string;
  readonly #lineAt: LineAt;
  /** Where the piece that is walked stands in the text. */
  #base = 0;
  /** Of the outermost mapping, when it is walked in pieces. */
  readonly #outermost: Entry[] = [];
  /** Of the document that is walked. */
  #anchored: { readonly leaf: Draft; readonly anchors: readonly string[] }[] = [];
  #aliases = new Set<string>();

  constructor(text: string, lineAt: LineAt) {
    this.#text = text;
    this.#lineAt = lineAt;
  }

  document(contents: Node | null, index: number): void {
    if (contents !== null) this.#node(contents, outermost(index), contents.range?.[0] ?? 0);
    this.#barAnchored();
  }

  /** A part of the only document's outermost mapping, which begins at `base`. */
  piece(map: YAMLMap, base: number): void {
    this.#base = base;
    const within = outermost(0);
    if (base === 0) this.collections.push(collectionPlace(map, within));
    this.#outermost.push(...this.#entries(map, within, 0));
  }

  done(): YamlLeaves {
    this.#barEntries(this.#outermost, outermost(0));
    this.#barAnchored();
    this.duplicates.sort((one, other) => (one.lines[0] ?? 0) - (other.lines[0] ?? 0));
    return this;
  }

  #barAnchored(): void {
    for (const { leaf, anchors } of this.#anchored) {
      const followed = anchors.find((anchor) => this.#aliases.has(anchor));
      if (followed !== undefined) leaf.bar ??= `would change with it what *${followed} stands for elsewhere`;
    }
    this.#anchored = [];
    this.#aliases = new Set();
  }

  #node(node: unknown, around: Around, offset: number): void {
    if (around.depth > MAX_DEPTH) throw new TooDeepError();
    if (isAlias(node)) this.#alias(node, around);
    else if (isScalar(node)) this.#scalar(node, around);
    else if (isCollection(node)) this.#collection(node, around, offset);
    // A key of a flow mapping that has no colon.
    else this.#nothing(around, offset);
  }

  #collection(node: YAMLMap | YAMLSeq, around: Around, offset: number): void {
    const within = inside(node, around);
    if (node.items.length === 0) {
      this.#nothing({ ...within, place: collectionPlace(node, around) }, node.range?.[0] ?? offset);
      return;
    }
    const number = this.collections.push(collectionPlace(node, around)) - 1;
    if (isMap(node)) this.#barEntries(this.#entries(node, within, number), within);
    else
      for (const [index, item] of node.items.entries()) {
        const key = String(index);
        this.#node(item, step(within, number, { name: undefined, key, written: key }), offset);
      }
  }

  #entries(map: YAMLMap, within: Around, number: number): readonly Entry[] {
    return map.items.map(({ key, value }) => {
      const name = nameOf(key);
      const from = this.leaves.length;
      this.#aliasesOf(key);
      const segment = {
        name,
        key: isAddressable(key, within) ? name : undefined,
        written: this.#written(key),
      };
      this.#node(value, step(within, number, segment), end(key));
      const line = this.#lineAt(this.#base + end(key));
      return { name, spellings: spellings(key), line, from, to: this.leaves.length };
    });
  }

  /** What a mapping's keys mean for what stands below them. */
  #barEntries(entries: readonly Entry[], within: Around): void {
    const merge = entries.findLastIndex(({ name }) => name === MERGE);
    if (merge >= 0 && within.key !== undefined) this.merging.add(within.key);
    const twice = this.#namedTwice(entries, within);
    const odd = entries.some(({ name }) => name === undefined);
    for (const [index, entry] of entries.entries()) {
      const bar = odd
        ? 'stands beside a key that is no name'
        : entry.spellings.some((spelling) => twice.has(spelling))
          ? `is ambiguous: ${entry.name} stands more than once`
          : index < merge
            ? 'stands before a merge key, and readers disagree on which of them wins'
            : undefined;
      if (bar === undefined) continue;
      for (const leaf of this.leaves.slice(entry.from, entry.to)) leaf.bar ??= bar;
    }
  }

  /** Also those that are one key only for readers that make text of keys: 0x10 and 16. */
  #namedTwice(entries: readonly Entry[], within: Around): ReadonlySet<string> {
    const found = new Map<string, Entry[]>();
    for (const entry of entries) {
      if (entry.name === MERGE) continue;
      for (const spelling of entry.spellings) {
        const known = found.get(spelling);
        if (known) known.push(entry);
        else found.set(spelling, [entry]);
      }
    }
    const twice = new Set<string>();
    for (const [name, same] of found) {
      if (same.length < 2) continue;
      twice.add(name);
      const key = within.key === undefined ? name : joined(within.key, name);
      this.duplicates.push({ key, lines: same.map(({ line }) => line) });
    }
    return twice;
  }

  #scalar(node: Scalar, around: Around): void {
    const [start, end] = this.#range(node);
    const style = STYLES[node.type ?? 'PLAIN'] ?? 'Block';
    const value = style === 'Plain' ? (node.source ?? '') : String(node.value);
    const anchors = node.anchor === undefined ? around.anchors : [...around.anchors, node.anchor];
    const bar = this.#bar({ tag: node.tag, style, value, start, end }, around);
    this.#leaf(around, { style, value, start, end, bar }, anchors, properties(node));
  }

  /** Where nothing is written, the place for it is right behind the colon, before any comment. */
  #range({ range }: Scalar): readonly [start: number, end: number] {
    const start = this.#base + (range?.[0] ?? 0);
    const end = this.#base + (range?.[1] ?? 0);
    if (start !== end) return [start, end];
    let place = start;
    while (this.#text[place - 1] === ' ' || this.#text[place - 1] === '\t') place -= 1;
    return this.#text[place - 1] === ':' ? [place, place] : [start, end];
  }

  #bar(
    {
      tag,
      style,
      value,
      start,
      end,
    }: Pick<Leaf, 'style' | 'value' | 'start' | 'end'> & { tag: string | undefined },
    { flow }: Around,
  ): string | undefined {
    if (tag !== undefined) return `has the tag ${tag}`;
    if (style === 'Block') return 'is a block of text';
    if (this.#text.slice(start, end).includes('\n')) return 'goes over several lines';
    if (value.length > MAX_VALUE_CHARS) return `has more than ${MAX_VALUE_CHARS} characters`;
    if (!isOneLine(value)) return 'is not one line of text';
    if (start === end && (flow || this.#text[start - 1] !== ':'))
      return 'is empty, without a place of its own';
    return undefined;
  }

  #alias(node: Alias, around: Around): void {
    this.#aliases.add(node.source);
    const start = this.#base + (node.range?.[0] ?? 0);
    const end = this.#base + (node.range?.[1] ?? 0);
    const bar = `is the alias *${node.source}, no scalar of its own`;
    this.#leaf(around, { style: 'Alias', value: node.source, start, end, bar }, around.anchors, '');
  }

  #nothing(around: Around, at: number): void {
    const bar = 'has no scalar';
    const start = this.#base + at;
    this.#leaf(around, { style: 'Empty', value: '', start, end: start, bar }, around.anchors, '');
  }

  #leaf(
    around: Around,
    own: Pick<Leaf, 'style' | 'value' | 'start' | 'end' | 'bar'>,
    anchors: readonly string[],
    properties: string,
  ): void {
    const leaf: Draft = {
      ...own,
      key: around.depth === 0 ? undefined : around.key,
      name: around.name,
      place: around.place + properties,
      line: this.#lineAt(own.start),
      flow: around.flow,
      bar: around.bar ?? own.bar,
    };
    this.leaves.push(leaf);
    if (anchors.length > 0) this.#anchored.push({ leaf, anchors });
  }

  #aliasesOf(key: unknown): void {
    if (isAlias(key)) this.#aliases.add(key.source);
    else if (isCollection(key)) visit(key, { Alias: (_, { source }) => void this.#aliases.add(source) });
  }

  #written(key: unknown): string {
    const range = isNode(key) ? key.range : undefined;
    return range
      ? this.#text.slice(this.#base + range[0], this.#base + range[1]) +
          (isScalar(key) ? properties(key) : '')
      : '';
  }
}

/** Around what is outermost in a document. The first needs no name, as long as no key begins like one. */
const outermost = (index: number): Around => ({
  key: index === 0 ? '' : `#${index + 1}`,
  name: undefined,
  place: `document ${index}`,
  depth: 0,
  flow: false,
  anchors: [],
  bar: undefined,
});

const STYLES: Readonly<Record<string, LeafStyle>> = {
  PLAIN: 'Plain',
  QUOTE_SINGLE: 'Single',
  QUOTE_DOUBLE: 'Double',
};

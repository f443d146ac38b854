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
import { isOneLine } from './text.ts';

/** Longer ones are texts, not settings. */
const MAX_VALUE_CHARS = 4096;
/** Deeper than anything that people write, and far from where the stack ends. */
const MAX_DEPTH = 100;

/** Every leaf of every document of a text from `decodeYaml`. Nothing is expanded, so that aliases cannot grow. */
export function readLeaves(text: string): YamlReading {
  const lineAt = lineCounter(text);
  try {
    const walk = new Walk(text, lineAt);
    // Keys that stand twice are found by the walk: the library compares each with each.
    const options = { prettyErrors: false, uniqueKeys: false, logLevel: 'silent' } as const;
    for (const [index, document] of parseAllDocuments(text, options).entries()) {
      if (document.errors.some(({ code }) => code === 'RESOURCE_EXHAUSTION')) throw new TooDeepError();
      const [fault] = document.errors;
      if (fault) return unreadable(`is not YAML: line ${lineAt(fault.pos[0])}: ${firstLine(fault.message)}`);
      walk.document(document.contents, index);
    }
    return walk;
  } catch (error) {
    // The library's own stack, where a text is made of nothing but brackets.
    if (error instanceof TooDeepError || error instanceof RangeError)
      return unreadable('is nested too deeply');
    throw error;
  }
}

const unreadable = (reason: string): YamlReading => ({ kind: 'Unreadable', reason });

const firstLine = (message: string): string => (message.split('\n', 1)[0] ?? '').slice(0, 200);

class TooDeepError extends Error {}

type Draft = Leaf & { bar: string | undefined };

class Walk implements YamlLeaves {
  readonly kind = 'Leaves';
  readonly leaves: Draft[] = [];
  readonly collections: string[] = [];
  readonly duplicates: DuplicateKey[] = [];
  readonly merging = new Set<string>();
  readonly #text: string;
  readonly #lineAt: (offset: number) => number;
  /** Of the document that is walked. */
  #anchored: { readonly leaf: Draft; readonly anchors: readonly string[] }[] = [];
  #aliases = new Set<string>();

  constructor(text: string, lineAt: (offset: number) => number) {
    this.#text = text;
    this.#lineAt = lineAt;
  }

  document(contents: Node | null, index: number): void {
    this.#anchored = [];
    this.#aliases = new Set();
    if (contents === null) return;
    // The first document needs no name, as long as no key begins like one.
    const key = index === 0 ? '' : `#${index + 1}`;
    const nothing = { name: undefined, depth: 0, flow: false, anchors: [], bar: undefined };
    this.#node(contents, { ...nothing, key, place: `document ${index}` }, contents.range?.[0] ?? 0);
    for (const { leaf, anchors } of this.#anchored) {
      const followed = anchors.find((anchor) => this.#aliases.has(anchor));
      if (followed !== undefined) leaf.bar ??= `would change with it what *${followed} stands for elsewhere`;
    }
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
    if (isMap(node)) this.#mapping(node, within, number);
    else
      for (const [index, item] of node.items.entries()) {
        const key = String(index);
        this.#node(item, step(within, number, { name: undefined, key, written: key }), offset);
      }
  }

  #mapping(map: YAMLMap, within: Around, number: number): void {
    const twice = this.#namedTwice(map, within);
    const merge = map.items.findLastIndex(({ key }) => nameOf(key) === MERGE);
    if (merge >= 0 && within.key !== undefined) this.merging.add(within.key);
    const odd = map.items.some(({ key }) => nameOf(key) === undefined);
    for (const [index, { key, value }] of map.items.entries()) {
      const name = nameOf(key);
      this.#aliasesOf(key);
      const below = step(within, number, {
        name,
        key: isAddressable(key, within) ? name : undefined,
        written: this.#written(key),
      });
      const bar = odd
        ? 'stands beside a key that is no name'
        : spellings(key).some((spelling) => twice.has(spelling))
          ? `is ambiguous: ${below.key ?? name} stands more than once`
          : index < merge
            ? 'stands before a merge key, and readers disagree on which of them wins'
            : undefined;
      this.#node(value, { ...below, bar: within.bar ?? bar }, end(key));
    }
  }

  /** Also those that are one key only for readers that make text of keys: 0x10 and 16. */
  #namedTwice(map: YAMLMap, within: Around): ReadonlySet<string> {
    const offsets = new Map<string, Set<number>>();
    for (const { key } of map.items) {
      const name = nameOf(key);
      if (name === undefined || name === MERGE) continue;
      for (const spelling of spellings(key)) {
        const known = offsets.get(spelling);
        if (known) known.add(end(key));
        else offsets.set(spelling, new Set([end(key)]));
      }
    }
    const twice = new Set<string>();
    for (const [name, found] of offsets) {
      if (found.size < 2) continue;
      twice.add(name);
      this.duplicates.push({
        key: within.key === undefined ? name : joined(within.key, name),
        lines: [...found].map(this.#lineAt),
      });
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
    const [start, end] = range ?? [0, 0, 0];
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
    const [from, to] = node.range ?? [0, 0, 0];
    const bar = `is the alias *${node.source}, no scalar of its own`;
    this.#leaf(around, { style: 'Alias', value: node.source, start: from, end: to, bar }, around.anchors, '');
  }

  #nothing(around: Around, at: number): void {
    const bar = 'has no scalar';
    this.#leaf(around, { style: 'Empty', value: '', start: at, end: at, bar }, around.anchors, '');
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
    return range ? this.#text.slice(range[0], range[1]) + (isScalar(key) ? properties(key) : '') : '';
  }
}

const STYLES: Readonly<Record<string, LeafStyle>> = {
  PLAIN: 'Plain',
  QUOTE_SINGLE: 'Single',
  QUOTE_DOUBLE: 'Double',
};

import { isCollection, isMap, isScalar, isSeq, type Pair, parseAllDocuments, type YAMLMap } from 'yaml';
import { plainReading } from '../edits/yaml/plain-reading.ts';
import { writeDocument } from './document.ts';
import type { Operation } from './plan.ts';
import { dotted, isList, isMapping, type Path, type Value } from './value.ts';

/** Where a document's values stand in a file. */
export interface Anchor {
  /** Index of the YAML document in its file. */
  readonly document: number;
  /** Path of the mapping that holds the values; empty: the document itself. */
  readonly prefix: Path;
}

export type PlanOutcome =
  | { readonly kind: 'Applied'; readonly text: string }
  | { readonly kind: 'Refused'; readonly reason: string };

/** Does one operation after the other; nothing but the lines of their keys changes. Block style only. */
export function applyPlan(text: string, anchor: Anchor, operations: readonly Operation[]): PlanOutcome {
  let now = text;
  for (const operation of operations) {
    const step = applyOne(now, anchor, operation);
    if (step.kind === 'Refused') return refused(`${dotted(operation.path)} ${step.reason}`);
    now = step.text;
  }
  return { kind: 'Applied', text: now };
}

function applyOne(text: string, anchor: Anchor, operation: Operation): PlanOutcome {
  const options = { prettyErrors: false, logLevel: 'silent' } as const;
  const document = parseAllDocuments(text, options)[anchor.document];
  if (document === undefined || document.errors.length > 0) return refused('cannot be found any more');
  const chain = chainTo(document.contents, [...anchor.prefix, ...operation.path.slice(0, -1)]);
  const map = chain?.at(-1)?.map;
  if (chain === undefined || map === undefined) return refused('has no section to stand in');
  if (chain.some(({ map: { flow } }) => flow)) return refused('stands in a mapping in braces');
  const key = operation.path.at(-1) ?? '';
  const pair = pairOf(map, key);
  switch (operation.kind) {
    case 'Rename':
      return pair === undefined ? refused('is not there') : rename(text, map, pair, operation.to);
    case 'Remove':
      return pair === undefined ? refused('is not there') : remove(text, chain, pair);
    case 'Set':
      return pair === undefined
        ? insert(text, map, key, operation.value)
        : replace(text, map, pair, key, operation.value);
  }
}

/** A mapping on the way, and the pair through which the way goes on. */
interface Link {
  readonly map: YAMLMap;
  readonly through: Pair | undefined;
}

/** Every mapping from the root to the one at the path, itself included; a list on the way breaks no chain. */
function chainTo(root: unknown, path: Path): readonly Link[] | undefined {
  const links: { map: YAMLMap; through: Pair | undefined }[] = [];
  let node: unknown = root;
  for (const key of path) {
    if (isMap(node)) {
      const pair = pairOf(node, key);
      links.push({ map: node, through: pair });
      node = pair?.value;
    } else if (isSeq(node)) {
      // Nothing above a list item goes when the item is emptied.
      links.length = 0;
      node = node.items[Number(key)];
    } else return undefined;
  }
  return isMap(node) ? [...links, { map: node, through: undefined }] : undefined;
}

const pairOf = (map: YAMLMap, key: string): Pair | undefined =>
  map.items.find((pair) => isScalar(pair.key) && String(pair.key.value) === key);

function rename(text: string, map: YAMLMap, pair: Pair, to: string): PlanOutcome {
  if (pairOf(map, to) !== undefined) return refused(`cannot be renamed: ${to} is there already`);
  const [start, end] = rangeOf(pair.key);
  return applied(text.slice(0, start) + keyToken(to) + text.slice(end));
}

function replace(text: string, map: YAMLMap, pair: Pair, key: string, value: Value): PlanOutcome {
  const [start, end] = rangeOf(pair.value);
  const scalar = isScalar(pair.value) && !text.slice(start, end).includes('\n') && start < end;
  if (scalar && !isMapping(value) && !isList(value))
    return applied(text.slice(0, start) + scalarToken(value) + text.slice(end));
  const lines = linesOf(text, pair);
  if (lines === undefined) return refused('stands on the line of its list item');
  const block = blockOf(text, map, key, value);
  return applied(text.slice(0, lines.start) + block + text.slice(lines.end));
}

/** Behind the last key of its mapping. */
function insert(text: string, map: YAMLMap, key: string, value: Value): PlanOutcome {
  const last = map.items.at(-1);
  if (last === undefined) return refused('stands in a section that has nothing in it');
  const end = endOfLine(text, contentEnd(last));
  const block = blockOf(text, map, key, value);
  if (end > 0 && text[end - 1] === '\n') return applied(text.slice(0, end) + block + text.slice(end));
  // The file ends without a newline, and goes on doing so.
  return applied(`${text.slice(0, end)}${newlineOf(text)}${block.replace(/\r?\n$/, '')}${text.slice(end)}`);
}

/** A key that is all that its section has takes the section with it: `section:` alone would be null. */
function remove(text: string, chain: readonly Link[], pair: Pair): PlanOutcome {
  let doomed = pair;
  for (let depth = chain.length - 1; depth > 0; depth -= 1) {
    const above = chain[depth - 1]?.through;
    if (chain[depth]?.map.items.length !== 1 || above === undefined) break;
    doomed = above;
  }
  const lines = linesOf(text, doomed);
  if (lines === undefined) return refused('stands on the line of its list item');
  return applied(text.slice(0, lines.start) + text.slice(lines.end));
}

/** The lines of a key with its value; undefined: something else stands on the first of them. */
function linesOf(text: string, pair: Pair): { readonly start: number; readonly end: number } | undefined {
  const [start] = rangeOf(pair.key);
  const lineStart = text.lastIndexOf('\n', start - 1) + 1;
  if (!/^\uFEFF? *$/.test(text.slice(lineStart, start))) return undefined;
  const from = text.startsWith('\uFEFF') && lineStart === 0 ? 1 : lineStart;
  return { start: from, end: endOfLine(text, contentEnd(pair)) };
}

/** Behind the last character of what the pair holds. */
function contentEnd(pair: Pair): number {
  const { value } = pair;
  if (isCollection(value) && !value.flow) {
    const last = value.items.at(-1);
    if (last === undefined) return rangeOf(value)[1];
    return isMap(value) || isPairLike(last) ? contentEnd(last as Pair) : endOfNode(last);
  }
  return Math.max(rangeOf(pair.key)[1], rangeOf(value)[1]);
}

function endOfNode(node: unknown): number {
  if (isMap(node) && !node.flow && node.items.length > 0) return Math.max(...node.items.map(contentEnd));
  if (isSeq(node) && !node.flow && node.items.length > 0) return endOfNode(node.items.at(-1));
  return rangeOf(node)[1];
}

const isPairLike = (node: unknown): boolean =>
  typeof node === 'object' && node !== null && 'key' in node && 'value' in node;

/** Start of the line behind the one that has `offset`; a block of text ends with its own newline. */
function endOfLine(text: string, offset: number): number {
  if (offset > 0 && text[offset - 1] === '\n') return offset;
  const newline = text.indexOf('\n', offset);
  return newline < 0 ? text.length : newline + 1;
}

function blockOf(text: string, map: YAMLMap, key: string, value: Value): string {
  const [start] = rangeOf(map.items[0]?.key);
  const indent = ' '.repeat(
    start -
      (text.lastIndexOf('\n', start - 1) + 1) -
      (text.startsWith('\uFEFF') && !text.slice(0, start).includes('\n') ? 1 : 0),
  );
  const newline = newlineOf(text);
  return writeDocument({ [key]: value })
    .trimEnd()
    .split('\n')
    .map((line) => (line === '' ? '' : indent + line) + newline)
    .join('');
}

const newlineOf = (text: string): string => (/\r\n/.test(text) ? '\r\n' : '\n');

const rangeOf = (node: unknown): readonly [number, number] => {
  const range = typeof node === 'object' && node !== null && 'range' in node ? node.range : undefined;
  return Array.isArray(range) ? [Number(range[0]), Number(range[1])] : [0, 0];
};

const keyToken = (key: string): string =>
  /^[A-Za-z_][A-Za-z0-9_./-]*$/.test(key) && plainReading(key) === 'String' ? key : JSON.stringify(key);

const scalarToken = (value: Value): string =>
  typeof value === 'string' && /[\n\r]/.test(value) ? JSON.stringify(value) : writeDocument(value).trimEnd();

const applied = (text: string): PlanOutcome => ({ kind: 'Applied', text });
const refused = (reason: string): PlanOutcome => ({ kind: 'Refused', reason });

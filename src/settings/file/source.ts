import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
  type YAMLMap,
} from 'yaml';
import type { Fault, Place } from './faults.ts';

export type Path = readonly PropertyKey[];

/** A YAML text that was read, and where in it everything stands. */
export interface Source {
  /** Undefined when the text is no YAML: `faults` says why. */
  readonly value: unknown;
  /** What YAML itself refuses, and keys that stand twice. */
  readonly faults: readonly Fault[];
  /** Of the value at a path, or of its key; of what is around it when it is not there. */
  place(path: Path, part?: 'key' | 'value'): Place;
}

/** More than any configuration needs, and few enough that aliases of aliases do not fill the memory. */
const MAX_ALIASES = 100;

export function readSource(text: string): Source {
  const lines = new LineCounter();
  // Keys that stand twice are found below, with their path.
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false });
  const placeOf = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const place: Source['place'] = (path, part = 'value') => placeOf(offsetOf(document, path, part));
  const faults: Fault[] = document.errors.map(({ pos: [start], message }) => ({
    ...placeOf(start),
    where: '',
    message: `is not YAML: ${message}`,
  }));
  visit(document, {
    Alias(_, node) {
      if (node.resolve(document) !== undefined) return;
      const message = `is not YAML: no anchor &${node.source} stands before this alias`;
      faults.push({ ...placeOf(start(node) ?? 0), where: '', message });
    },
  });
  if (faults.length > 0) return { value: undefined, faults, place };
  try {
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
    return { value, faults: repeatedKeys(document, placeOf), place };
  } catch (error) {
    const message = `is not YAML: ${error instanceof Error ? error.message : String(error)}`;
    return { value: undefined, faults: [{ line: 1, column: 1, where: '', message }], place };
  }
}

function offsetOf(document: Document, path: Path, part: 'key' | 'value'): number {
  let node = resolved(document, document.contents);
  let offset = start(node) ?? 0;
  for (const [index, step] of path.entries()) {
    const isLast = index === path.length - 1;
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => keyText(key) === String(step));
      if (pair === undefined) return offset;
      const key = isNode(pair.key) ? start(pair.key) : undefined;
      const value = isNode(pair.value) ? start(pair.value) : undefined;
      // Of what is missing below it the key is told: there it has to be added.
      offset = (isLast && part === 'value' ? (value ?? key) : key) ?? offset;
      node = resolved(document, pair.value);
    } else if (isSeq(node)) {
      const item = node.items[Number(step)];
      if (!isNode(item)) return offset;
      offset = start(item) ?? offset;
      node = resolved(document, item);
    } else return offset;
  }
  return offset;
}

/** GitLab's paths are case-insensitive, so that a project can stand twice although its keys differ. */
function repeatedKeys(document: Document, placeOf: (offset: number) => Place): readonly Fault[] {
  const faults: Fault[] = [];
  const search = (node: Node | undefined, path: readonly string[]): void => {
    if (isSeq(node)) for (const [index, item] of node.items.entries()) below(item, [...path, String(index)]);
    if (!isMap(node)) return;
    for (const { key, at, first } of repeated(node, isProjects(path)))
      faults.push({
        ...placeOf(at),
        where: [...path, key].join('.'),
        message: `stands twice, first on line ${placeOf(first).line}: remove one of them`,
      });
    for (const { key, value } of node.items) below(value, [...path, keyText(key)]);
  };
  // An alias is not followed: what it stands for is seen where it is written.
  const below = (node: unknown, path: readonly string[]): void =>
    search(isNode(node) ? node : undefined, path);
  below(document.contents, []);
  return faults;
}

function* repeated(node: YAMLMap, ignoreCase: boolean) {
  const seen = new Map<string, number>();
  for (const { key } of node.items) {
    const name = keyText(key);
    const same = ignoreCase ? name.toLowerCase() : name;
    const at = (isNode(key) ? start(key) : undefined) ?? 0;
    const first = seen.get(same);
    if (first === undefined) seen.set(same, at);
    else yield { key: name, at, first };
  }
}

const isProjects = ([top, , last, ...more]: readonly string[]): boolean =>
  top === 'workflows' && last === 'projects' && more.length === 0;

function resolved(document: Document, node: unknown): Node | undefined {
  if (isAlias(node)) return node.resolve(document);
  return isNode(node) ? node : undefined;
}

const keyText = (key: unknown): string => String(isScalar(key) ? key.value : key);

const start = (node: Node | undefined | null): number | undefined => node?.range?.[0];

import { isMap, isNode, isScalar, type YAMLMap, type YAMLSeq } from 'yaml';
import { isOneLine } from './text.ts';

/** What is around a leaf. */
export interface Around {
  readonly key: string | undefined;
  /** Last segment of the path. */
  readonly name: string | undefined;
  /** Number of the collection around it, and where in that it stands. */
  readonly place: string;
  readonly depth: number;
  readonly flow: boolean;
  /** Of this and everything around it, in this document. */
  readonly anchors: readonly string[];
  readonly bar: string | undefined;
}

/** Of one segment and of the whole path; longer ones are not for people to read. */
const MAX_NAME_CHARS = 256;
const MAX_KEY_CHARS = 1024;

/** The key by which YAML 1.1 takes in what another mapping has. */
export const MERGE = '<<';

/** A key's text; undefined: it is no scalar. */
export function nameOf(key: unknown): string | undefined {
  if (!isScalar(key)) return undefined;
  return key.type === 'PLAIN' || key.value === null ? (key.source ?? '') : String(key.value);
}

/** The key's text, and what readers take it for that make text of what it means. */
export function spellings(key: unknown): readonly string[] {
  const name = nameOf(key);
  if (name === undefined) return [];
  const meaning = String(isScalar(key) ? key.value : name);
  return meaning === name ? [name] : [name, meaning];
}

/** Whether an edit can name it: one segment between dots, which reads back as itself from `key = value`. */
export function isAddressable(key: unknown, within: Around): boolean {
  const name = nameOf(key);
  if (name === undefined || name === '' || name === MERGE) return false;
  if (!isScalar(key) || key.anchor !== undefined || key.tag !== undefined) return false;
  if (within.depth === 0 && name.startsWith('#')) return false;
  if (name.length > MAX_NAME_CHARS || (within.key?.length ?? 0) > MAX_KEY_CHARS) return false;
  return isOneLine(name) && name.trim() === name && !/[.=]/.test(name);
}

/** Around what stands below; a key of undefined cannot be addressed. `written` tells it from its siblings. */
export function step(
  around: Around,
  collection: number,
  {
    name,
    key,
    written,
  }: { readonly name: string | undefined; readonly key: string | undefined; readonly written: string },
): Around {
  return {
    ...around,
    name,
    key: around.key === undefined || key === undefined ? undefined : joined(around.key, key),
    place: `${collection}/${written.length}:${written}`,
    depth: around.depth + 1,
  };
}

export const joined = (parent: string, key: string): string => (parent === '' ? key : `${parent}.${key}`);

export function inside(node: YAMLMap | YAMLSeq, around: Around): Around {
  return {
    ...around,
    flow: around.flow || node.flow === true,
    anchors: node.anchor === undefined ? around.anchors : [...around.anchors, node.anchor],
    bar: around.bar ?? (node.tag === undefined ? undefined : `stands below the tag ${node.tag}`),
  };
}

/** What has to stay of a collection besides what is in it. */
export const collectionPlace = (node: YAMLMap | YAMLSeq, { place }: Around): string =>
  `${place} ${isMap(node) ? 'map' : 'list'}${node.flow ? ' flow' : ''}${properties(node)}`;

/** Tag and anchor, as they have to stay. */
export const properties = ({ tag, anchor }: { readonly tag?: string; readonly anchor?: string }): string =>
  (tag === undefined ? '' : ` !${tag}`) + (anchor === undefined ? '' : ` &${anchor}`);

/** Offset behind the key. */
export const end = (key: unknown): number => (isNode(key) ? (key.range?.[1] ?? 0) : 0);

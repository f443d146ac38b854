import { isRecord } from '../applications/manifests.ts';
import { joined } from '../rendering/fields.ts';
import type { Values } from './merge.ts';

export interface Leaf {
  readonly path: readonly string[];
  readonly value: unknown;
}

const MAX_DEPTH = 32;

/** Everything that is no mapping, and empty mappings, in document order. Lists are one value: helm replaces them whole. */
export function* leavesOf(values: Values, above: readonly string[] = []): Generator<Leaf> {
  for (const [key, value] of Object.entries(values)) {
    const path = [...above, key];
    if (isRecord(value) && Object.keys(value).length > 0 && path.length < MAX_DEPTH)
      yield* leavesOf(value, path);
    else yield { path, value };
  }
}

/** As reports write keys: dotted, with keys that have dots quoted. */
export const dotted = (path: readonly string[]): string =>
  path.reduce((above, key) => joined(above, key), '');

export type Place =
  | { readonly kind: 'Here'; readonly value: unknown }
  /** An ancestor is there and no mapping, or an empty one: everything below is its reader's own affair. */
  | { readonly kind: 'Open'; readonly at: readonly string[] }
  | { readonly kind: 'Nowhere' };

/** What a document of values says at a path. */
export function placeOf(values: Values, path: readonly string[]): Place {
  let inside: unknown = values;
  for (const [index, key] of path.entries()) {
    if (!isRecord(inside) || (index > 0 && Object.keys(inside).length === 0))
      return { kind: 'Open', at: path.slice(0, index) };
    if (!Object.hasOwn(inside, key)) return { kind: 'Nowhere' };
    inside = inside[key];
  }
  return { kind: 'Here', value: inside };
}

import type { RepositoryTree } from '../port.ts';
import { readableText } from './readable.ts';
import type { DuplicateKey } from './yaml/leaf.ts';
import { readLeaves } from './yaml/leaves.ts';

/** A scalar that an edit can name. */
export interface EditableScalar {
  readonly key: string;
  /** What an edit's `from` has to be: as written where it is plain, without its quotes where it is quoted. */
  readonly value: string;
  /** From 1. */
  readonly line: number;
}

export type FileInventory =
  | {
      readonly kind: 'Inventory';
      readonly path: string;
      /** In the order of the file. */
      readonly scalars: readonly EditableScalar[];
      /** Leaves that are not edited: blocks of text, aliases, keys with dots, what anchors share. */
      readonly others: number;
      readonly duplicates: readonly DuplicateKey[];
    }
  /** Named, never left out: what is not described is not unchanged. */
  | { readonly kind: 'Unreadable'; readonly path: string; readonly reason: string };

export function inventoryOf(tree: RepositoryTree, path: string): FileInventory {
  const source = readableText(tree, path);
  if (source.kind === 'Refused') return { kind: 'Unreadable', path, reason: source.message };
  return inventory(path, source.text);
}

/** Of a text from `decodeYaml`. */
export function inventory(path: string, text: string): FileInventory {
  const reading = readLeaves(text);
  if (reading.kind === 'Unreadable') return { kind: 'Unreadable', path, reason: reading.reason };
  const scalars = reading.leaves.flatMap(({ key, value, line, bar }) =>
    key === undefined || bar !== undefined ? [] : [{ key, value, line }],
  );
  const others = reading.leaves.length - scalars.length;
  return { kind: 'Inventory', path, scalars, others, duplicates: reading.duplicates };
}

import { parseDocument } from 'yaml';
import type { Leaf, YamlLeaves } from './yaml/leaf.ts';
import { readLeaves } from './yaml/leaves.ts';

export interface Expected {
  readonly leaf: Leaf;
  /** As written, without the space before it. */
  readonly token: string;
  readonly value: string | number | boolean;
}

/**
 * Reads an edited text again. Undefined: both versions of YAML read the new values, and every other leaf of every
 * document stands where it stood, as it was; else what is different.
 */
export function readBackFault(
  before: YamlLeaves,
  text: string,
  expected: readonly Expected[],
): string | undefined {
  for (const { token, value } of expected)
    for (const version of ['1.1', '1.2'] as const)
      if (parseDocument(token, { version, logLevel: 'silent' }).toJS() !== value)
        return `would not be read as ${JSON.stringify(value)} by YAML ${version}`;
  const after = readLeaves(text);
  if (after.kind === 'Unreadable') return `could not be read afterwards: the file ${after.reason}`;
  const sameCollections =
    after.collections.length === before.collections.length &&
    before.collections.every((place, index) => after.collections[index] === place);
  if (!sameCollections || after.leaves.length !== before.leaves.length)
    return 'would change the structure of the file';
  const targets = new Map(expected.map((target) => [target.leaf, target]));
  for (const [index, leaf] of before.leaves.entries()) {
    const now = after.leaves[index];
    const target = targets.get(leaf);
    const same =
      now !== undefined &&
      now.place === leaf.place &&
      now.line === leaf.line &&
      (target === undefined ? isSame(leaf, now) : text.slice(now.start, now.end) === target.token);
    if (!same) return `would change ${leaf.key ?? 'a value'} on line ${leaf.line} as well`;
  }
  return undefined;
}

const isSame = (one: Leaf, other: Leaf): boolean =>
  one.style === other.style && one.value === other.value && one.end - one.start === other.end - other.start;

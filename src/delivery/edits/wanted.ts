import type { Edit } from '../verdict.ts';
import type { Refusal } from './refusal.ts';
import type { Leaf, YamlLeaves } from './yaml/leaf.ts';
import { isOneLine } from './yaml/text.ts';

export type Wanted =
  | { readonly kind: 'Wanted'; readonly leaf: Leaf; readonly to: string }
  | ({ readonly kind: 'Refused' } & Refusal);

/** Longer than any value that is edited. */
const MAX_TO_CHARS = 4096;

/** The scalar that an edit names, when it is still what the edit says, and the value that it is to have. */
export function wanted(reading: YamlLeaves, text: string, { key, from, to }: Edit): Wanted {
  if (!isOneLine(from) || !isOneLine(to)) return refused('Malformed', 'from and to have to be one line each');
  if (to.length > MAX_TO_CHARS) return refused('Malformed', `to has more than ${MAX_TO_CHARS} characters`);
  const leaves = reading.leaves.filter((leaf) => leaf.key === key);
  const [leaf] = leaves;
  if (leaf === undefined) return refused(...unknownKey(reading, key));
  if (leaf.bar !== undefined) return refused('NotEditable', leaf.bar);
  if (leaves.length > 1) return refused('NotEditable', 'is ambiguous: it stands more than once');
  const written = text.slice(leaf.start, leaf.end);
  // With its quotes it is the same scalar, and then those of `to` are meant as quotes as well.
  const quoted = leaf.value !== from && isQuoted(written) && written === from;
  if (leaf.value !== from && !quoted)
    return refused('Stale', `is ${shown(leaf.value)} now, not ${shown(from)}`);
  if (quoted !== isQuoted(to) && !(isQuoted(leaf.value) && isQuoted(to)))
    return refused('Malformed', 'from and to have to have the same quotes, or none');
  const value = quoted ? to.slice(1, -1) : to;
  if (quoted && (to[0] !== from[0] || /["'\\]/.test(value)))
    return refused('Malformed', 'to has quotes within quotes: write the bare value');
  if (value === leaf.value) return refused('Malformed', 'changes nothing');
  return { kind: 'Wanted', leaf, to: value };
}

function unknownKey({ leaves, duplicates, merging }: YamlLeaves, key: string): [Refusal['reason'], string] {
  const below = (parent: string) => key === parent || key.startsWith(`${parent}.`);
  const twice = duplicates.find((duplicate) => below(duplicate.key));
  if (twice)
    return ['NotEditable', `is ambiguous: ${twice.key} stands on lines ${twice.lines.join(' and ')}`];
  if (leaves.some((leaf) => leaf.key?.startsWith(`${key}.`)))
    return ['NotEditable', 'is no scalar but has keys below it'];
  const merged = [...merging].find((parent) => parent === '' || below(parent));
  if (merged !== undefined)
    return [
      'NotEditable',
      `is no scalar of its own: ${merged === '' ? 'the document' : merged} takes values through a merge key`,
    ];
  return ['UnknownKey', 'is not in the file'];
}

const isQuoted = (text: string): boolean => /^(".*"|'.*')$/s.test(text) && text.length > 1;

const shown = (value: string): string => JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);

const refused = (reason: Refusal['reason'], message: string): Wanted => ({
  kind: 'Refused',
  reason,
  message,
});

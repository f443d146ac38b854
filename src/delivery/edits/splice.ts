import type { Edit } from '../verdict.ts';
import { deniedGroup } from './reach/out-of-reach.ts';
import { type Expected, readBackFault } from './read-back.ts';
import type { Refusal } from './refusal.ts';
import { wanted } from './wanted.ts';
import { writtenScalar } from './written-scalar.ts';
import type { Leaf, YamlLeaves } from './yaml/leaf.ts';
import { readLeaves } from './yaml/leaves.ts';

/** A piece of a text and what is to stand there; offsets are those of the text before. */
export interface Splice {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** All of them at once; they may not overlap. Every other character stays. */
export function splice(text: string, splices: readonly Splice[]): string {
  const parts: string[] = [];
  let at = 0;
  for (const { start, end, text: piece } of [...splices].sort((a, b) => a.start - b.start)) {
    parts.push(text.slice(at, start), piece);
    at = end;
  }
  return parts.join('') + text.slice(at);
}

export interface SplicedEdit {
  readonly edit: Edit;
  readonly line: number;
  /** The scalar as it is written now, quotes included. */
  readonly before: string;
  readonly after: string;
}

export interface SplicedText {
  /** The same object as before when nothing was edited. */
  readonly text: string;
  readonly spliced: readonly SplicedEdit[];
  readonly refused: readonly (Refusal & { readonly edit: Edit })[];
}

/**
 * Edits of one YAML text (from `decodeYaml`) whose paths may be edited and whose versions are corroborated. What
 * comes out was read again: the keys have their new values, and nothing else is different.
 */
export function spliceEdits(text: string, edits: readonly Edit[]): SplicedText {
  const reading = readLeaves(text);
  if (reading.kind === 'Unreadable')
    return allRefused(text, edits, { reason: 'Unreadable', message: reading.reason });
  const group = reading.leaves.map(groupOf).find((found) => found !== undefined);
  if (group !== undefined)
    return allRefused(text, edits, {
      reason: 'PathDenied',
      message: `has an object of ${group}, which decides what is run, built or promoted`,
    });
  const changes: Change[] = [];
  const refused: (Refusal & { edit: Edit })[] = [];
  for (const edit of edits) {
    const change = changeOf(reading, text, edit);
    if (change.kind === 'Refused') refused.push({ ...change, edit });
    else if (changes.some(({ leaf }) => leaf === change.leaf))
      refused.push({ reason: 'Malformed', message: 'is edited twice', edit });
    else changes.push(change);
  }
  if (changes.length === 0) return { text, spliced: [], refused };
  const after = splice(
    text,
    changes.map(({ splice }) => splice),
  );
  const fault = readBackFault(reading, after, changes);
  if (fault !== undefined) {
    const edits = changes.map(({ edit }) => edit);
    const { refused: all } = allRefused(text, edits, { reason: 'ReadBack', message: fault });
    return { text, spliced: [], refused: [...refused, ...all] };
  }
  const spliced = changes.map(({ edit, leaf, token }) => ({
    edit,
    line: leaf.line,
    before: text.slice(leaf.start, leaf.end),
    after: token,
  }));
  return { text: after, spliced, refused };
}

interface Change extends Expected {
  readonly kind: 'Change';
  readonly edit: Edit;
  readonly splice: Splice;
}

const allRefused = (text: string, edits: readonly Edit[], refusal: Refusal): SplicedText => ({
  text,
  spliced: [],
  refused: edits.map((edit) => ({ ...refusal, edit })),
});

function groupOf({ name, value }: Leaf): string | undefined {
  return name === 'apiVersion' ? deniedGroup(value) : undefined;
}

function changeOf(
  reading: YamlLeaves,
  text: string,
  edit: Edit,
): Change | ({ readonly kind: 'Refused' } & Refusal) {
  const found = wanted(reading, text, edit);
  if (found.kind === 'Refused') return found;
  const { leaf, to } = found;
  const written = writtenScalar(leaf, to);
  if (written.kind === 'Refused') return written;
  const { token } = written;
  // Behind the colon of a key without a value.
  const piece = leaf.start === leaf.end ? ` ${token}` : token;
  return {
    ...written,
    kind: 'Change',
    edit,
    leaf,
    splice: { start: leaf.start, end: leaf.end, text: piece },
  };
}

import { ALL_LEVERS, type Levers } from '../levers.ts';
import type { FileChange, RepositoryTree } from '../port.ts';
import type { Edit } from '../verdict.ts';
import { type EditPolicy, normalPath, pathRefusal } from './policy.ts';
import { readableText } from './readable.ts';
import type { Refusal } from './refusal.ts';
import { spliceEdits } from './splice.ts';
import { uncorroborated } from './version-shape.ts';
import { encodeYaml } from './yaml/text.ts';

export interface AppliedEdit extends Edit {
  /** From 1. */
  readonly line: number;
  /** The scalar as it was and as it is written, quotes included. */
  readonly before: string;
  readonly after: string;
}

export interface RejectedEdit extends Refusal, Pick<Edit, 'path' | 'key'> {
  readonly edit: Edit;
}

export interface ApplyResult {
  /** Whole files with the applied edits in them, sorted by path; only those that changed. */
  readonly files: readonly FileChange[];
  /** In the order of the verdict. */
  readonly applied: readonly AppliedEdit[];
  readonly rejected: readonly RejectedEdit[];
  /** Sound by themselves, and not applied because others were rejected. */
  readonly withheld: readonly AppliedEdit[];
}

export interface ApplyOptions {
  /** Default true: one rejected edit withholds them all. */
  readonly allOrNothing?: boolean;
  readonly levers?: Levers;
}

/**
 * Edits of one verdict, in memory: the tree stays as it is. Each is refused or made by itself; every refusal is
 * told. Throws only on a path pattern that could never match.
 */
export function applyEdits(
  tree: RepositoryTree,
  policy: EditPolicy,
  verdict: readonly Edit[],
  { allOrNothing = true, levers = ALL_LEVERS }: ApplyOptions = {},
): ApplyResult {
  // One object for each, also where the same one is given twice.
  const edits = verdict.map((edit) => ({ ...edit }));
  const rejected = new Map<Edit, Refusal>();
  const staged = new Map<Edit, AppliedEdit>();
  const files: FileChange[] = [];
  for (const [path, group] of byFile(edits)) {
    const allowed = group.filter((edit) => {
      const refusal =
        pathRefusal(policy, path) ?? (levers.corroboration ? pinRefusal(policy, edit) : undefined);
      if (refusal) rejected.set(edit, refusal);
      return refusal === undefined;
    });
    if (allowed.length === 0) continue;
    const source = readableText(tree, path);
    if (source.kind === 'Refused') {
      for (const edit of allowed) rejected.set(edit, source);
      continue;
    }
    const { text, spliced, refused } = spliceEdits(source.text, allowed);
    for (const { edit, ...refusal } of refused) rejected.set(edit, refusal);
    for (const { edit, ...done } of spliced) staged.set(edit, { ...edit, ...done, path });
    if (spliced.length > 0) files.push({ path, bytes: encodeYaml(text) });
  }
  const inOrder = edits.flatMap((edit) => staged.get(edit) ?? []);
  const refusals = edits.flatMap((edit) => {
    const refusal = rejected.get(edit);
    if (!refusal) return [];
    const { reason, message } = refusal;
    return [{ path: edit.path, key: edit.key, reason, message, edit }];
  });
  const withheld = allOrNothing && refusals.length > 0;
  return {
    files: withheld ? [] : files.sort((a, b) => (a.path < b.path ? -1 : 1)),
    applied: withheld ? [] : inOrder,
    rejected: refusals,
    withheld: withheld ? inOrder : [],
  };
}

/** All edits of a file are made on what it is now: none sees what another one wrote. */
function byFile(edits: readonly Edit[]): ReadonlyMap<string, readonly Edit[]> {
  const files = new Map<string, Edit[]>();
  for (const edit of edits) {
    const path = normalPath(edit.path);
    const group = files.get(path);
    if (group) group.push(edit);
    else files.set(path, [edit]);
  }
  return files;
}

function pinRefusal({ evidence }: EditPolicy, { from, to }: Edit): Refusal | undefined {
  const [pin] = uncorroborated(to, from, evidence);
  if (pin === undefined) return undefined;
  const message = `${JSON.stringify(pin)} occurs nowhere in what was shown`;
  return { reason: 'NotCorroborated', message };
}

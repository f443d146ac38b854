import type { GateReport } from '../gate/report.ts';

/** Shorter ones are in every text. */
const MIN_LETTERS = 3;

/**
 * Names and kinds in the gate's own findings: what commits are searched for. Code chooses, so that a model cannot
 * pick what corroborates it. Names first, then kinds, each sorted.
 */
export function subjectsOf(report: GateReport): readonly string[] {
  const objects = report.applications.flatMap(({ added, removed, changed, apiVersionMoves }) => [
    ...removed,
    ...apiVersionMoves,
    ...changed,
    ...added,
  ]);
  const dropped = report.applications.flatMap(({ droppedVersions }) => droppedVersions);
  const names = objects.map(({ name }) => name);
  const kinds = [
    ...objects.map(({ kind }) => kind),
    ...dropped.flatMap(({ kind, crd, group }) => [kind, crd, group]),
  ];
  return unique([...names.toSorted(), ...kinds.toSorted()]);
}

/** The terms that a text mentions, whatever its spelling: letters and digits count. */
export function mentioned(terms: readonly string[], text: string): readonly string[] {
  const plain = lettersOf(text);
  return terms.filter((term) => plain.includes(lettersOf(term)));
}

function unique(terms: readonly string[]): readonly string[] {
  const seen = new Set<string>();
  return terms.filter((term) => {
    const letters = lettersOf(term);
    if (letters.length < MIN_LETTERS || seen.has(letters)) return false;
    seen.add(letters);
    return true;
  });
}

const lettersOf = (text: string): string => text.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '');

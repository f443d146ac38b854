/** An apiVersion that a bump stops serving, and what to say instead. */
export interface VersionSwap {
  readonly group: string;
  readonly kind: string;
  /** No longer served. */
  readonly versions: readonly string[];
  readonly target: string;
}

export type SwapOutcome =
  | {
      readonly kind: 'Swapped';
      readonly text: string;
      /** From 1. */
      readonly lines: readonly number[];
    }
  /** Declares none of them. */
  | { readonly kind: 'Unchanged' }
  /** Declares one in a form that is not rewritten line by line; nothing of the file was. */
  | { readonly kind: 'Refused'; readonly reason: string };

/**
 * Rewrites `apiVersion: group/version` on its own line where `kind:` beside it is the one meant: at the top of a
 * document, inside another, or in a block of text. Read again afterwards; what is left over refuses the file.
 */
export function swapApiVersions(text: string, swaps: readonly VersionSwap[]): SwapOutcome {
  const lines = text.split('\n');
  const changed: number[] = [];
  for (const [index, line] of lines.entries()) {
    const declared = declarationOf(line);
    if (declared === undefined) continue;
    const kind = kindBeside(lines, index, declared.column);
    const swap = swaps.find((one) => one.kind === kind && isDropped(one, declared.value));
    if (swap === undefined) continue;
    lines[index] = line.replace(declared.value, `${swap.group}/${swap.target}`);
    changed.push(index + 1);
  }
  const left = leftOver(lines, swaps);
  if (left !== undefined) return { kind: 'Refused', reason: left };
  if (changed.length === 0) return { kind: 'Unchanged' };
  return { kind: 'Swapped', text: lines.join('\n'), lines: changed };
}

const DECLARATION = /^(\uFEFF?\s*(?:- +)*)(["']?)apiVersion\2\s*:\s+(["']?)([^\s"'#{}]+)\3\s*(#.*)?$/;
const KIND = /^(\uFEFF?\s*(?:- +)*)(["']?)kind\2\s*:\s+(["']?)([A-Za-z]+)\3\s*(#.*)?$/;

function declarationOf(line: string): { readonly column: number; readonly value: string } | undefined {
  const [, before, , , value] = DECLARATION.exec(line) ?? [];
  return before === undefined || value === undefined ? undefined : { column: columnOf(before), value };
}

const columnOf = (before: string): number => before.replace('\uFEFF', '').length;

/** `kind` of the mapping to which the line belongs: the lines around it at its column. */
function kindBeside(lines: readonly string[], index: number, column: number): string | undefined {
  return kindAbove(lines, index, column) ?? kindBelow(lines, index, column);
}

function kindAbove(lines: readonly string[], index: number, column: number): string | undefined {
  // A line with a dash begins its mapping.
  for (let at = index; at >= 0; at -= 1) {
    const line = lines[at] ?? '';
    if (at < index && isOutside(line, column)) return undefined;
    const kind = kindAt(line, column);
    if (kind !== undefined) return kind;
    if (startsItem(line, column)) return undefined;
  }
  return undefined;
}

function kindBelow(lines: readonly string[], index: number, column: number): string | undefined {
  for (let at = index + 1; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    if (isOutside(line, column) || startsItem(line, column)) return undefined;
    const kind = kindAt(line, column);
    if (kind !== undefined) return kind;
  }
  return undefined;
}

function kindAt(line: string, column: number): string | undefined {
  const [, before, , , kind] = KIND.exec(line) ?? [];
  return before !== undefined && columnOf(before) === column ? kind : undefined;
}

/** Less indented, or the border of a document. */
function isOutside(line: string, column: number): boolean {
  if (/^\s*(#.*)?$/.test(line)) return false;
  if (/^(---|\.\.\.)/.test(line.trimStart())) return true;
  const indent = line.length - line.trimStart().length;
  return indent < column && !startsItem(line, column);
}

/** The dashes of a list item lead right up to the column. */
const startsItem = (line: string, column: number): boolean => {
  const [dashes] = /^\uFEFF?\s*(?:- +)+/.exec(line) ?? [];
  return dashes !== undefined && columnOf(dashes) === column;
};

const isDropped = ({ group, versions }: VersionSwap, value: string): boolean =>
  versions.some((version) => value === `${group}/${version}`);

/** A dropped version that still stands somewhere and is not provably another kind's. */
function leftOver(lines: readonly string[], swaps: readonly VersionSwap[]): string | undefined {
  for (const [index, line] of lines.entries()) {
    if (/^\s*#/.test(line) || !line.includes('apiVersion')) continue;
    const dropped = swaps.find(({ group, versions }) =>
      versions.some((version) => new RegExp(`${escaped(`${group}/${version}`)}(?![\\w.-])`).test(line)),
    );
    if (dropped === undefined) continue;
    const declared = declarationOf(line);
    const kind = declared && kindBeside(lines, index, declared.column);
    // Other kinds of the group may still serve the version.
    if (kind !== undefined && !swaps.some((swap) => swap.kind === kind && swap.group === dropped.group))
      continue;
    return `line ${index + 1} declares ${dropped.group} in a form that is not rewritten by itself`;
  }
  return undefined;
}

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&');

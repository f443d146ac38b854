import { CAUSE_KINDS, type CauseKind } from './pipeline-case.ts';

/** A report as the workflow's prompt shapes it. */
export interface ReportParts {
  /** The headings of its causes, as `### 1. The image is gone (infrastructure)`, or the sentence that stands for one. */
  readonly causes: readonly string[];
  readonly kinds: readonly CauseKind[];
  /** What it says itself: without folded evidence, blocks of code, inline code and quotations. */
  readonly prose: string;
}

export function reportParts(report: string): ReportParts {
  const unfolded = report.replaceAll(/<details>[\s\S]*?(?:<\/details>|$)/gi, '').replaceAll(FENCED, '');
  const lines = unfolded.split('\n');
  const headings = lines.filter((line) => /^#{2,4} /.test(line) && kindsIn(line).length > 0);
  const causes = headings.length > 0 ? headings : lines.filter((line) => kindsIn(line).length > 0);
  const prose = lines
    .filter((line) => !/^\s*>/.test(line))
    .join('\n')
    .replaceAll(/`[^`\n]*`/g, '');
  return { causes, kinds: causes.flatMap((line) => kindsIn(line).slice(-1)), prose };
}

/** A block of code, also one that never ends. */
const FENCED = /^ {0,3}(`{3,}|~{3,})[\s\S]*?(?:^ {0,3}\1[`~]*[ \t]*$|(?![\s\S]))/gm;

/** `(change)`, also with emphasis or more words around: `(**change**, quite sure)`. */
const kindsIn = (line: string): readonly CauseKind[] =>
  [...line.matchAll(/\(([^()]*)\)/g)].flatMap(([, inside = '']) =>
    CAUSE_KINDS.filter((kind) => new RegExp(`^\\W*(?:kind:\\s*)?${kind}\\b`, 'i').test(inside)),
  );

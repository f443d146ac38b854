import type { GateReport } from '../gate/report.ts';
import type { Bump } from '../port.ts';
import { block, line } from './block.ts';

/** What the prompt `triage` is filled with; all of it is the evidence that edits are held against. */
export interface TriageQuestion {
  readonly bump: Pick<Bump, 'project' | 'iid' | 'title'>;
  readonly report: GateReport;
  /** The report as Markdown. */
  readonly reportText: string;
  /** Of `describeFiles`: inventories sorted by path, with the files that could not be described. */
  readonly files: string;
  /** What was counted in the cluster, where somebody may look. */
  readonly live?: string | undefined;
}

/** What the prompt `explain` is filled with. */
export interface ExplainQuestion extends Omit<TriageQuestion, 'files'> {
  /** Release notes, one block; undefined: none were found, for the reason that `upstream` gives. */
  readonly notes?: string | undefined;
  /** Commits that mention what the report names, or what the search for them came to. */
  readonly commits?: string | undefined;
  /** Why there is no testimony, in one sentence. */
  readonly silence?: string | undefined;
}

export function triageText(question: TriageQuestion): string {
  return [
    header(question),
    block('Gate report', question.reportText),
    block('Inventory', question.files),
    live(question.live),
    'Decide, and answer with the JSON object.\n',
  ].join('\n');
}

export function explainText(question: ExplainQuestion): string {
  const { notes, commits, silence } = question;
  return [
    header(question),
    block('Gate report', question.reportText),
    live(question.live),
    ...(notes === undefined ? [] : [block('Release notes', notes)]),
    ...(commits === undefined ? [] : [block('Commits', commits)]),
    ...(silence === undefined ? [] : [`## No testimony\n\n${line('Why', silence)}`]),
    'Explain, and answer with the JSON object.\n',
  ].join('\n');
}

function header({ bump, report }: Pick<TriageQuestion, 'bump' | 'report'>): string {
  const moves = report.applications.map(({ name, base, head }) =>
    line(
      name,
      `${base?.chart ?? head?.chart ?? 'chart'} ${base?.version ?? '(none)'} -> ${head?.version ?? '(none)'}`,
    ),
  );
  return ['# Merge request\n\n', line(`${bump.project}!${bump.iid}`, bump.title), ...moves].join('');
}

const live = (text: string | undefined): string =>
  text === undefined
    ? '## Live block\n\nThere is none: nobody has looked into the cluster.\n'
    : block('Live block', text);

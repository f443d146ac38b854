import { type AppliedEdit, applyEdits, type RejectedEdit } from '../edits/apply.ts';
import { describeFiles } from '../edits/inventory-text.ts';
import { outcomeOf } from '../edits/outcome.ts';
import type { GateReport } from '../gate/report.ts';
import { ALL_LEVERS, type Levers } from '../levers.ts';
import type { Bump, FileChange, RepositoryTree } from '../port.ts';
import type { DeliveryQuestions } from '../prompts/ask-delivery.ts';
import { readVerdict } from '../prompts/read-verdict.ts';
import type { Verdict } from '../verdict.ts';

export interface TriageRequest {
  readonly bump: Pick<Bump, 'project' | 'iid' | 'title'>;
  readonly head: RepositoryTree;
  readonly report: GateReport;
  readonly reportText: string;
  readonly live: string | undefined;
  readonly policy: {
    readonly allow: readonly string[];
    readonly deny: readonly string[];
    readonly allOrNothing: boolean;
  };
}

export type TriageOutcome =
  | {
      readonly kind: 'Fix';
      readonly verdict: Verdict;
      readonly files: readonly FileChange[];
      readonly applied: readonly AppliedEdit[];
      readonly rejected: readonly RejectedEdit[];
    }
  | { readonly kind: 'NoAction'; readonly verdict: Verdict }
  | {
      readonly kind: 'Escalate';
      /** A few words for the commit status. */
      readonly reason: string;
      /** Undefined: there is no judgement, and `reason` says why. */
      readonly verdict: Verdict | undefined;
      readonly rejected: readonly RejectedEdit[];
      readonly withheld: readonly AppliedEdit[];
    };

/** What the model says of a red gate, and what is left of it behind the checks. Nothing upstream is read here. */
export async function triage(
  { bump, head, report, reportText, live, policy }: TriageRequest,
  questions: Pick<DeliveryQuestions, 'triage'>,
  signal?: AbortSignal,
  levers: Levers = ALL_LEVERS,
): Promise<TriageOutcome> {
  const tree = withoutLargeFiles(head);
  const files = describeFiles(tree, report.changedFiles, levers);
  const { answer, shown } = await questions.triage({ bump, report, reportText, files, live }, signal);
  const read = readVerdict(answer);
  if (read.kind === 'None') return { ...NOTHING_DONE, reason: read.reason, verdict: undefined };
  const { verdict } = read;
  switch (verdict.classification) {
    case 'no_action':
      return { kind: 'NoAction', verdict };
    case 'escalate':
      return { ...NOTHING_DONE, reason: verdict.escalationReason, verdict };
    case 'mechanical': {
      // Whatever an edit does, it cannot explain such a move; one that goes along with it points the wrong way.
      const move = report.applications.flatMap(({ targeting }) => targeting)[0];
      if (move !== undefined && levers.direction)
        return {
          ...NOTHING_DONE,
          reason: `a ${move.what.toLowerCase()} moved, which no version brings about`,
          verdict,
        };
      const { allow, deny, allOrNothing } = policy;
      const edits = applyEdits(
        tree,
        { allow, deny, scope: report.changedFiles, evidence: shown },
        verdict.edits,
        { allOrNothing, levers },
      );
      const outcome = outcomeOf(edits, levers);
      if (outcome.kind === 'Escalate')
        return {
          kind: 'Escalate',
          reason: 'the proposed edits were refused',
          verdict,
          rejected: outcome.rejected,
          withheld: outcome.withheld,
        };
      const { applied, rejected } = outcome;
      return { kind: 'Fix', verdict, files: outcome.files, applied, rejected };
    }
  }
}

const NOTHING_DONE = { kind: 'Escalate', rejected: [], withheld: [] } as const;

/** A file of 5 MB takes seconds to be listed, in which nothing else is done: Leases would be lost over it. */
const MAX_EDITED_BYTES = 1024 * 1024;

const withoutLargeFiles = (tree: RepositoryTree): RepositoryTree => ({
  ...tree,
  entry(path) {
    const entry = tree.entry(path);
    return entry?.kind === 'File' && entry.bytes.length > MAX_EDITED_BYTES
      ? { kind: 'TooLarge', size: entry.bytes.length }
      : entry;
  },
});

import type { AgentRun } from '../../crds/agent-run.ts';
import { type Approval, type Verdict, verdictOn } from '../../crds/approval.ts';
import { isTerminal } from '../../crds/reasons.ts';

/** A question of a run that somebody's command answers. */
export interface Answered {
  readonly run: AgentRun;
  readonly approval: Approval;
}

export type Asked =
  | { readonly kind: 'Found'; readonly answered: Answered }
  /** It has an answer already, or its time is over. */
  | { readonly kind: 'Decided'; readonly approval: Approval; readonly verdict: Verdict | undefined }
  /** No question is named, or none of that name exists; these wait. */
  | { readonly kind: 'Unclear'; readonly waiting: readonly Answered[] };

/**
 * The question that `approve ID` or `deny ID` is about. Without an id it is the only one that the runs under way have
 * ever asked: who writes it can have read no other, so the answer to one is never taken for another's.
 */
export function questionMeant(id: string, runs: readonly AgentRun[]): Asked {
  const all = runs
    .filter(({ status }) => !isTerminal(status?.phase))
    .flatMap((run) => (run.status?.approvals ?? []).map((approval) => ({ run, approval })));
  const [only, second] = id === '' ? all : all.filter(({ approval }) => approval.id === id);
  if (only === undefined || second !== undefined) return { kind: 'Unclear', waiting: all.filter(isWaiting) };
  if (isWaiting(only)) return { kind: 'Found', answered: only };
  const { run, approval } = only;
  return { kind: 'Decided', approval, verdict: verdictOn(run, approval.id) };
}

/** The question that this very note has answered: its message comes again, and the run may be over by now. */
export function answeredBy(noteId: number, runs: readonly AgentRun[]): Answered | undefined {
  return runs
    .flatMap((run) => (run.status?.approvals ?? []).map((approval) => ({ run, approval })))
    .find(({ run, approval }) =>
      (verdictOn(run, approval.id)?.by ?? approval.by)?.endsWith(`, note ${noteId}`),
    );
}

const isWaiting = ({ run, approval }: Answered): boolean =>
  approval.state === 'Waiting' &&
  verdictOn(run, approval.id) === undefined &&
  run.status?.outcome === undefined;

import type { AgentRun } from '../../../crds/agent-run.ts';
import { formatDuration } from '../../../crds/duration.ts';
import type { RunConditionType, RunPhase, RunReason } from '../../../crds/reasons.ts';
import { type ConditionChange, conditionOf } from '../../conditions.ts';
import { forget } from '../local.ts';
import type { StepContext, StepResult } from '../step.ts';
import { nextStatus } from '../step.ts';

/** A partial answer within a limit that the user set is a success with a word about it. */
const PHASES: Readonly<Record<RunReason, RunPhase>> = {
  Succeeded: 'Succeeded',
  Partial: 'Succeeded',
  BudgetExceeded: 'Succeeded',
  Timeout: 'Failed',
  Cancelled: 'Cancelled',
  Superseded: 'Cancelled',
  SkippedDraft: 'Skipped',
  SkippedRule: 'Skipped',
  SkippedDuplicate: 'Skipped',
  RateLimited: 'Skipped',
  AccessDenied: 'Failed',
  ModelError: 'Failed',
  ModelNoAnswer: 'Failed',
  SandboxLost: 'Failed',
  SandboxUnavailable: 'Failed',
  PolicyRefused: 'Failed',
  InvalidSpec: 'Failed',
};

export const phaseOf = (reason: RunReason): RunPhase => PHASES[reason];

/** The terminal write. Nothing irreversible is left to do when it happens. */
export function finish(context: StepContext): StepResult {
  const { deps, run } = context;
  const outcome = run.status?.outcome;
  if (outcome === undefined) throw new Error(`AgentRun ${run.metadata.name}: no outcome to finish with`);
  const now = deps.clock.now();
  const phase = phaseOf(outcome.reason);
  const start = run.status?.startTime;
  const tookMs = start === undefined ? undefined : now.getTime() - Date.parse(start);
  const message = outcome.message ?? phase;
  return {
    written() {
      forget(context.local, run.metadata.uid ?? '');
      deps.events.record(run, phase === 'Failed' ? 'Warning' : 'Normal', outcome.reason, message);
      deps.metrics.ended(run, outcome.reason, tookMs === undefined ? undefined : tookMs / 1000);
    },
    status: nextStatus(
      context,
      {
        phase,
        completionTime: now.toISOString(),
        ...(tookMs === undefined ? {} : { duration: formatDuration(tookMs) }),
      },
      {
        type: 'Succeeded',
        status: phase === 'Succeeded' ? 'True' : 'False',
        reason: outcome.reason,
        message,
      },
      ...givenUp(run),
    ),
  };
}

/** What was still being tried is not tried any more: a finished run has no condition that may yet change. */
function givenUp(run: AgentRun): readonly ConditionChange<RunConditionType>[] {
  return (['NotePosted', 'SessionSaved'] as const).flatMap((type) => {
    const condition = conditionOf(run.status?.conditions, type);
    if (condition?.status !== 'Unknown') return [];
    return [{ type, status: 'False' as const, reason: 'GaveUp', message: condition.message }];
  });
}

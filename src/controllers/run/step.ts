import type { AgentRun, AgentRunStatus } from '../../crds/agent-run.ts';
import type { AgentWorkflow } from '../../crds/agent-workflow.ts';
import type { Condition } from '../../crds/meta.ts';
import { RUN_CONDITIONS, type RunConditionType, type RunReason } from '../../crds/reasons.ts';
import { clip } from '../../crds/shapes.ts';
import { type ConditionChange, changedCondition } from '../conditions.ts';
import type { RunDeps } from './deps.ts';
import type { EffectiveRun } from './effective.ts';
import type { LocalState } from './local.ts';

export interface StepContext {
  readonly deps: RunDeps;
  readonly local: LocalState;
  readonly run: AgentRun;
  readonly workflow: AgentWorkflow | undefined;
  readonly effective: EffectiveRun;
  readonly signal: AbortSignal;
  /** Asks for another look at this run, at once or after so long. */
  wake(afterMs?: number): void;
}

/** The whole next status, and how soon to look again; without `afterMs` the next step follows at once. */
export interface StepResult {
  readonly status?: AgentRunStatus;
  /** The run after a write to its metadata. */
  readonly run?: AgentRun;
  /** The object is not there any more. */
  readonly gone?: true;
  /** Called when the status is in the API server: for what must be told once. */
  readonly written?: () => void;
  readonly afterMs?: number;
}

export function nextStatus(
  context: StepContext,
  changes: Partial<AgentRunStatus>,
  ...conditions: readonly ConditionChange<RunConditionType>[]
): AgentRunStatus {
  const { run, deps } = context;
  const at = { now: deps.clock.now(), generation: run.metadata.generation };
  let list: readonly Condition[] | undefined = run.status?.conditions;
  for (const change of conditions) {
    const others = (list ?? []).filter(({ type }) => type !== change.type);
    const shown = { ...change, message: deps.redact(change.message) };
    list = [...others, changedCondition(list, shown, at)].sort((a, b) => place(a.type) - place(b.type));
  }
  return {
    ...run.status,
    ...changes,
    ...(list === undefined ? {} : { conditions: list }),
    ...(run.metadata.generation === undefined ? {} : { observedGeneration: run.metadata.generation }),
  };
}

/** Conditions stand in the order of RUN_CONDITIONS, so that a reader finds them at the same place. */
const place = (type: string): number => PLACES.indexOf(type);
const PLACES: readonly string[] = RUN_CONDITIONS;

/** The end is decided; what follows only tells it. */
export function withOutcome(
  context: StepContext,
  reason: RunReason,
  message: string,
  changes: Partial<AgentRunStatus> = {},
  ...conditions: readonly ConditionChange<RunConditionType>[]
): StepResult {
  const shown = clip(context.deps.redact(message));
  return {
    status: nextStatus(
      context,
      {
        ...changes,
        phase: 'Finishing',
        outcome: { ...changes.outcome, reason, message: shown, time: context.deps.clock.now().toISOString() },
      },
      ...conditions,
      { type: 'Succeeded', status: 'Unknown', reason, message: shown },
    ),
  };
}

/** The marker's session id: the run's own uid for a new conversation. */
export const sessionIdOf = (run: AgentRun): string => run.spec.sessionRef?.name ?? run.metadata.uid ?? '';

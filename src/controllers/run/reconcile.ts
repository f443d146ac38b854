import { AGENT_RUNS, type AgentRun } from '../../crds/agent-run.ts';
import { applyStatus } from '../../kube/apply.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { isKubeError } from '../../kube/errors.ts';
import type { ObjectRef } from '../../kube/port.ts';
import { act } from './act.ts';
import { decide, msToDeadline } from './decide.ts';
import type { RunDeps } from './deps.ts';
import { type LocalState, seen } from './local.ts';
import { type Observation, observe } from './observe.ts';
import type { StepContext, StepResult } from './step.ts';

export const FIELD_MANAGER = 'hummingbird-run';

/** More steps than any run has between two waits; a decision that never settles stops here and backs off. */
const MAX_STEPS = 40;

export type RunReconciler = (ref: ObjectRef, signal: AbortSignal) => Promise<ReconcileResult>;

/**
 * Brings one run as far as it goes now. Level-triggered: it knows nothing of events, reads the run from the
 * API server, and writes the status once after each step, guarded by the resourceVersion that the step saw.
 * A step that fails is tried again with the queue's backoff, and an Event says what it waits for.
 */
export function createRunReconciler(
  deps: RunDeps,
  local: LocalState,
  wake: (ref: ObjectRef, afterMs?: number) => void,
): RunReconciler {
  return async (ref, signal) => {
    let known: AgentRun | undefined;
    for (let count = 0; count < MAX_STEPS; count += 1) {
      // A replica that stops, or has lost its Lease, begins nothing more.
      signal.throwIfAborted();
      const observed = await observe(deps, local, ref, known);
      await seen(local, ref, observed?.run.metadata.uid);
      if (observed === undefined) return {};
      const step = decide(observed.state, deps.clock.now());
      if (step.kind === 'Done') return {};
      if (step.kind === 'Wait') return step.ms === undefined ? {} : { requeueAfterMs: step.ms };
      const { run, workflow, effective } = observed;
      const context: StepContext = {
        ...{ deps, local, run, workflow, effective, signal },
        wake: (afterMs) => wake(ref, afterMs),
      };
      const result = await timed(deps, step.kind, () =>
        act(step, context).catch((error: unknown) => {
          tellFailure(context, observed, step.kind, error);
          throw error;
        }),
      );
      local.failures.delete(run.metadata.uid ?? '');
      known = await write(deps, result.run ?? run, result);
      if (result.afterMs !== undefined) return { requeueAfterMs: result.afterMs };
      if (known === undefined) return {};
    }
    throw new Error(`AgentRun ${ref.namespace}/${ref.name}: no rest after ${MAX_STEPS} steps`);
  };
}

/**
 * Writes the whole status by server-side apply. The resourceVersion in it makes a stale writer fail: a holder
 * that was replaced in the meantime cannot record anything, and what it read is thrown away.
 */
async function write(deps: RunDeps, run: AgentRun, result: StepResult): Promise<AgentRun | undefined> {
  if (result.status === undefined) return result.gone ? undefined : run;
  const written = await applyStatus(deps.kube, AGENT_RUNS, run, result.status, {
    fieldManager: FIELD_MANAGER,
  });
  result.written?.();
  return written;
}

/**
 * Where people look: an Event, and later the message of a time limit. A conflict or an API server that is away is
 * the queue's business. The queue's backoff may be longer than what is left of the run: its deadline is kept.
 */
function tellFailure(context: StepContext, { state }: Observation, step: string, error: unknown): void {
  const { deps, local, run, signal } = context;
  if (signal.aborted) return;
  const leftMs = msToDeadline(state, deps.clock.now());
  if (run.status?.outcome === undefined && leftMs > 0) context.wake(leftMs);
  if (isKubeError(error, 'Conflict') || (isKubeError(error) && error.retryable)) return;
  const message = `${step}: ${deps.redact(error instanceof Error ? error.message : String(error))}`;
  local.failures.set(run.metadata.uid ?? '', message);
  deps.events.record(run, 'Warning', 'StepFailed', message);
}

async function timed(deps: RunDeps, step: string, work: () => Promise<StepResult>): Promise<StepResult> {
  const before = deps.clock.monotonicMs();
  try {
    return await work();
  } finally {
    deps.metrics.step(step, (deps.clock.monotonicMs() - before) / 1000);
  }
}

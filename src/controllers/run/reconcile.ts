import { AGENT_RUNS, type AgentRun, type AgentRunStatus } from '../../crds/agent-run.ts';
import { API_VERSION } from '../../crds/meta.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { ObjectRef } from '../../kube/port.ts';
import { act } from './act.ts';
import { decide, type Step } from './decide.ts';
import type { RunDeps } from './deps.ts';
import type { LocalState } from './local.ts';
import { observe } from './observe.ts';
import type { StepResult } from './step.ts';

export const FIELD_MANAGER = 'hummingbird-run';

/** More steps than any run has between two waits; a decision that never settles stops here and backs off. */
const MAX_STEPS = 40;

export type RunReconciler = (ref: ObjectRef, signal: AbortSignal) => Promise<ReconcileResult>;

/**
 * Brings one run as far as it goes now. Level-triggered: it knows nothing of events, reads the run from the
 * API server, and writes the status once after each step, guarded by the resourceVersion that the step saw.
 * A step that fails is tried again with the queue's backoff; the run itself shows what it waits for.
 */
export function createRunReconciler(
  deps: RunDeps,
  local: LocalState,
  wake: (ref: ObjectRef) => void,
): RunReconciler {
  return async (ref, signal) => {
    let known: AgentRun | undefined;
    for (let count = 0; count < MAX_STEPS; count += 1) {
      const observed = await observe(deps, local, ref, known);
      if (observed === undefined) return {};
      const step = decide(observed.state, deps.clock.now());
      if (step.kind === 'Done') return {};
      if (step.kind === 'Wait') return step.ms === undefined ? {} : { requeueAfterMs: step.ms };
      const { run, workflow, effective } = observed;
      const context = { deps, local, run, workflow, effective, signal, wake: () => wake(ref) };
      const result = await timed(deps, step, () => act(step, context));
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
  const { name = '', namespace = '', resourceVersion } = run.metadata;
  const status: AgentRunStatus = result.status;
  return deps.kube.patch(
    AGENT_RUNS,
    { name, namespace },
    {
      type: 'apply',
      fieldManager: FIELD_MANAGER,
      force: true,
      body: {
        apiVersion: API_VERSION,
        kind: 'AgentRun',
        metadata: { name, namespace, resourceVersion },
        status,
      },
    },
    { subresource: 'status' },
  );
}

async function timed(deps: RunDeps, step: Step, work: () => Promise<StepResult>): Promise<StepResult> {
  const before = deps.clock.monotonicMs();
  try {
    return await work();
  } finally {
    deps.metrics.step(step.kind, (deps.clock.monotonicMs() - before) / 1000);
  }
}

import { AGENT_RUNS, type AgentRun } from '../../crds/agent-run.ts';
import type { AgentWorkflow } from '../../crds/agent-workflow.ts';
import { isTerminal } from '../../crds/reasons.ts';
import type { ObjectRef } from '../../kube/port.ts';
import { pinnedWorkflow } from '../workflow/pins.ts';
import { approvalsView } from './approvals.ts';
import type { ExecutionState, Observed, SessionState } from './decide.ts';
import type { RunDeps } from './deps.ts';
import { type EffectiveRun, effectiveRun } from './effective.ts';
import type { LocalState } from './local.ts';
import { progressNote } from './progress.ts';
import { isAutomatic, NO_RIVALRY, type Rivalry, rivalryOf } from './rivals.ts';
import { runBefore, runUntold } from './turn.ts';

export interface Observation {
  readonly run: AgentRun;
  readonly workflow: AgentWorkflow | undefined;
  readonly effective: EffectiveRun;
  readonly state: Observed;
}

/** Reads everything that the next decision rests on. `known` is the run as our own last write returned it. */
export async function observe(
  deps: RunDeps,
  local: LocalState,
  ref: ObjectRef,
  known: AgentRun | undefined,
): Promise<Observation | undefined> {
  const run = known ?? (await deps.kube.get(AGENT_RUNS, ref));
  if (run === undefined) return undefined;
  const uid = run.metadata.uid ?? '';
  const workflow = await workflowOf(deps, local, run);
  const effective = effectiveRun(run, workflow);
  const holder = run.status?.holder;
  return {
    run,
    workflow,
    effective,
    state: {
      run,
      execution: executionState(local, run, effective.publishesNote),
      holdsSandbox: local.sandboxes.has(uid),
      session: sessionState(deps, local, run),
      rivalry: rivalry(deps, run, workflow),
      progress: progressNote(
        run,
        effective.showsProgress ? (local.progress.get(uid) ?? {}) : undefined,
        deps.clock.now(),
      ),
      self: deps.holderName,
      holderAlive: holder !== undefined && (await deps.isHolderAlive(holder.replica)),
      lastFailure: local.failures.get(uid),
      publishesNote: effective.publishesNote,
      usesSandbox: effective.pool !== undefined,
      timeoutMs: effective.timeoutMs,
      ttlMs: effective.ttlMs,
    },
  };
}

function rivalry(deps: RunDeps, run: AgentRun, workflow: AgentWorkflow | undefined): Rivalry {
  if (!isAutomatic(run) || isTerminal(run.status?.phase)) return NO_RIVALRY;
  return rivalryOf(run, workflow?.spec.concurrency ?? 'Supersede', deps.rivals(run));
}

function sessionState(deps: RunDeps, local: LocalState, run: AgentRun): SessionState {
  const { spec, metadata, status } = run;
  if (spec.sessionRef === undefined) return { kind: 'New' };
  if (local.openSessions.has(metadata.uid ?? '')) return { kind: 'Open' };
  if (isTerminal(status?.phase)) return { kind: 'ToOpen' };
  const ofSession = deps.sessionRuns(metadata.namespace ?? '', spec.sessionRef.name);
  const before = runBefore(run, ofSession);
  if (before === undefined) return { kind: 'ToOpen' };
  const untold = runUntold(run, ofSession)?.metadata.name;
  return { kind: 'Behind', run: before.metadata.name ?? '', ...(untold === undefined ? {} : { untold }) };
}

async function workflowOf(
  deps: RunDeps,
  local: LocalState,
  run: AgentRun,
): Promise<AgentWorkflow | undefined> {
  const { metadata, spec, status } = run;
  const { uid = '', namespace } = metadata;
  const inNamespace = namespace === undefined ? {} : { namespace };
  const ref = { name: spec.workflowRef.name, ...inNamespace };
  const isOurs = status?.holder?.replica === deps.holderName && !isTerminal(status.phase);
  const pin = isOurs ? status.workflow : undefined;
  const known = local.workflows.get(uid);
  if (pin !== undefined && known?.metadata.generation === pin.generation) return known;
  const present = await deps.workflow(ref);
  if (pin === undefined) {
    // What was begun with a workflow needs its token and its pool to the end, also when somebody deletes it meanwhile.
    if (present !== undefined && isOurs) local.workflows.set(uid, present);
    return present ?? known;
  }
  const kept = await deps.pins.pinned({ name: pin.revision, ...inNamespace });
  const used = kept === undefined ? present : pinnedWorkflow(kept, ref, present);
  if (used === undefined) return known;
  if (kept === undefined)
    deps.events.record(
      run,
      'Warning',
      'WorkflowNotKept',
      `ControllerRevision ${pin.revision} is gone or cannot be read: going on with the AgentWorkflow as it is now`,
    );
  // Looked up once by each holder.
  local.workflows.set(uid, { ...used, metadata: { ...used.metadata, generation: pin.generation } });
  return local.workflows.get(uid);
}

function executionState(local: LocalState, run: AgentRun, publishesNote: boolean): ExecutionState {
  const uid = run.metadata.uid ?? '';
  const execution = local.executions.get(uid);
  if (execution?.state === 'Discarded') local.executions.delete(uid);
  switch (execution?.state) {
    case 'Running': {
      const newest = execution.progress?.checkpoint?.sequence;
      return {
        kind: 'Running',
        unrecorded: newest !== undefined && newest > (run.status?.checkpoint?.sequence ?? 0),
        approvals: approvalsView(run, execution.questions?.open ?? [], publishesNote),
      };
    }
    case 'Finished':
      return { kind: 'Finished' };
    default:
      return { kind: 'None' };
  }
}

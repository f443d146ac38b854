import { isDeepStrictEqual } from 'node:util';
import { AGENT_WORKFLOWS, type AgentWorkflow, type AgentWorkflowStatus } from '../../crds/agent-workflow.ts';
import { applyStatus } from '../../kube/apply.ts';
import type { Clock } from '../../kube/clock.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { EventRecorder, KubeClient, ObjectRef } from '../../kube/port.ts';
import { conditionOf, isTrue } from '../conditions.ts';
import { decideWorkflow, type ProjectCheck, type ReferenceCheck, type WorkflowObserved } from './decide.ts';

export interface WorkflowDeps {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  readonly clock: Clock;
  /** Resolves everything that the workflow names: prompt, model key, read tokens, pool. */
  references(workflow: AgentWorkflow): Promise<readonly ReferenceCheck[]>;
  /** Asks GitLab who the project's bot is. */
  project(workflow: AgentWorkflow, path: string): Promise<ProjectCheck>;
  activeRuns(workflow: AgentWorkflow): number;
}

export const WORKFLOW_FIELD_MANAGER = 'hummingbird-workflow';
/** Secrets and bots change without the workflow's own event: looked at again this often. */
const RECHECK_MS = 60_000;
/** Sooner while something is missing, so that creating the Secret is enough. */
const RECHECK_BROKEN_MS = 5_000;

/** What was looked up for one generation of a workflow, and until when it counts. */
interface Looked {
  readonly uid: string | undefined;
  readonly generation: number | undefined;
  readonly untilMs: number;
  readonly found: Pick<WorkflowObserved, 'references' | 'projects'>;
}

/**
 * Keeps a workflow's conditions true: what it names exists, has the right tier, and GitLab knows its bots. Every
 * change of a run wakes it too, for `activeRuns`; Secrets and GitLab are asked only when their time has come.
 */
export function createWorkflowReconciler(deps: WorkflowDeps) {
  const looked = new Map<string, Looked>();
  return async (ref: ObjectRef): Promise<ReconcileResult> => {
    const key = `${ref.namespace}/${ref.name}`;
    const workflow = await deps.kube.get(AGENT_WORKFLOWS, ref);
    if (workflow === undefined || workflow.metadata.deletionTimestamp !== undefined) {
      looked.delete(key);
      return {};
    }
    const { uid, generation } = workflow.metadata;
    const nowMs = deps.clock.monotonicMs();
    const before = looked.get(key);
    const known = before !== undefined && stillCounts(before, workflow, nowMs) ? before : undefined;
    const found = known?.found ?? (await lookUp(deps, workflow));
    const status = decideWorkflow(
      { workflow, ...found, activeRuns: deps.activeRuns(workflow) },
      deps.clock.now(),
    );
    const recheckMs = isTrue(status.conditions, 'Ready') ? RECHECK_MS : RECHECK_BROKEN_MS;
    const untilMs = known?.untilMs ?? nowMs + recheckMs;
    looked.set(key, { uid, generation, untilMs, found });
    if (!isDeepStrictEqual(workflow.status, status)) await write(deps, workflow, status);
    return { requeueAfterMs: untilMs - nowMs };
  };
}

const stillCounts = (
  { uid, generation, untilMs }: Looked,
  { metadata }: AgentWorkflow,
  nowMs: number,
): boolean => uid === metadata.uid && generation === metadata.generation && nowMs < untilMs;

async function lookUp(deps: WorkflowDeps, workflow: AgentWorkflow): Promise<Looked['found']> {
  const posts = workflow.spec.publish.kind === 'Note';
  const [references, projects] = await Promise.all([
    deps.references(workflow),
    Promise.all(
      workflow.spec.projects.map(({ path }) =>
        posts ? deps.project(workflow, path) : { path, ready: true },
      ),
    ),
  ]);
  return { references, projects };
}

async function write(
  deps: WorkflowDeps,
  workflow: AgentWorkflow,
  status: AgentWorkflowStatus,
): Promise<void> {
  await applyStatus(deps.kube, AGENT_WORKFLOWS, workflow, status, { fieldManager: WORKFLOW_FIELD_MANAGER });
  const before = conditionOf(workflow.status?.conditions, 'Ready');
  const after = conditionOf(status.conditions, 'Ready');
  if (after !== undefined && before?.status !== after.status)
    deps.events.record(workflow, after.status === 'True' ? 'Normal' : 'Warning', after.reason, after.message);
}

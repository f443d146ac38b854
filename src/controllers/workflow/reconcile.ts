import { isDeepStrictEqual } from 'node:util';
import { AGENT_WORKFLOWS, type AgentWorkflow, type AgentWorkflowStatus } from '../../crds/agent-workflow.ts';
import { API_VERSION } from '../../crds/meta.ts';
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

/** Keeps a workflow's conditions true: what it names exists, has the right tier, and GitLab knows its bots. */
export function createWorkflowReconciler(deps: WorkflowDeps) {
  return async (ref: ObjectRef): Promise<ReconcileResult> => {
    const workflow = await deps.kube.get(AGENT_WORKFLOWS, ref);
    if (workflow === undefined || workflow.metadata.deletionTimestamp !== undefined) return {};
    const status = decideWorkflow(await observe(deps, workflow), deps.clock.now());
    if (!isDeepStrictEqual(workflow.status, status)) await write(deps, workflow, status);
    const ready = isTrue(status.conditions, 'Ready');
    return { requeueAfterMs: ready ? RECHECK_MS : RECHECK_BROKEN_MS };
  };
}

async function observe(deps: WorkflowDeps, workflow: AgentWorkflow): Promise<WorkflowObserved> {
  const posts = workflow.spec.publish.kind === 'Note';
  const [references, projects] = await Promise.all([
    deps.references(workflow),
    Promise.all(
      workflow.spec.projects.map(({ path }) =>
        posts ? deps.project(workflow, path) : { path, ready: true },
      ),
    ),
  ]);
  return { workflow, references, projects, activeRuns: deps.activeRuns(workflow) };
}

async function write(
  deps: WorkflowDeps,
  workflow: AgentWorkflow,
  status: AgentWorkflowStatus,
): Promise<void> {
  const { name = '', namespace = '' } = workflow.metadata;
  await deps.kube.patch(
    AGENT_WORKFLOWS,
    { name, namespace },
    {
      type: 'apply',
      fieldManager: WORKFLOW_FIELD_MANAGER,
      force: true,
      body: { apiVersion: API_VERSION, kind: 'AgentWorkflow', metadata: { name, namespace }, status },
    },
    { subresource: 'status' },
  );
  const before = conditionOf(workflow.status?.conditions, 'Ready');
  const after = conditionOf(status.conditions, 'Ready');
  if (after !== undefined && before?.status !== after.status)
    deps.events.record(workflow, after.status === 'True' ? 'Normal' : 'Warning', after.reason, after.message);
}

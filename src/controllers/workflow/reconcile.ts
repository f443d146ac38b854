import { isDeepStrictEqual } from 'node:util';
import { AGENT_WORKFLOWS, type AgentWorkflow, type AgentWorkflowStatus } from '../../crds/agent-workflow.ts';
import { applyStatus } from '../../kube/apply.ts';
import type { Clock } from '../../kube/clock.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { isKubeError } from '../../kube/errors.ts';
import { CONTROLLER_REVISION, type ControllerRevision } from '../../kube/kinds.ts';
import type { EventRecorder, KubeClient, ObjectRef } from '../../kube/port.ts';
import { conditionOf, isTrue } from '../conditions.ts';
import { acceptance, withKept } from './accept.ts';
import { decideWorkflow, type ProjectCheck, type ReferenceCheck, type WorkflowObserved } from './decide.ts';
import { isForRun, keptRevision, newestKept, revisionsOf } from './kept.ts';

export interface WorkflowDeps {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  readonly clock: Clock;
  /** Resolves everything that the workflow names: prompt, model key, read tokens, pool. */
  references(workflow: AgentWorkflow): Promise<readonly ReferenceCheck[]>;
  /** Asks GitLab who the project's bot is. */
  project(workflow: AgentWorkflow, path: string): Promise<ProjectCheck>;
  activeRuns(workflow: AgentWorkflow): number;
  /** Specs that were kept, of all workflows; may be stale. */
  revisions(): readonly ControllerRevision[];
  /** Names of those that a run under way goes on with; may be stale. */
  revisionsInUse(): ReadonlySet<string>;
}

export const WORKFLOW_FIELD_MANAGER = 'hummingbird-workflow';
/** Secrets and bots change without the workflow's own event: looked at again this often. */
const RECHECK_MS = 60_000;
/** Sooner while something is missing, so that creating the Secret is enough. */
const RECHECK_BROKEN_MS = 5_000;

/**
 * A run is admitted with the spec that its replica knows, and names it in its status: both are seen here a moment later.
 * Until a spec was out of use for so long, it stays.
 */
const FORGET_AFTER_MS = 60_000;

/** What was looked up for one generation of a workflow, and until when it counts. */
interface Looked {
  readonly uid: string | undefined;
  readonly generation: number | undefined;
  readonly untilMs: number;
  readonly found: Omit<WorkflowObserved, 'workflow' | 'activeRuns'>;
}

/**
 * Keeps a workflow's conditions true, and the last spec that was accepted, for the time when a bad one comes: what it names exists, has the right tier, and GitLab knows its bots. A
 * run that comes or ends wakes it too, for `activeRuns`; Secrets and GitLab are asked only when their time has come.
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
    const isGood = found.acceptance.kind === 'Accepted' && found.references.every(({ ok }) => ok);
    // Before the status says that it was accepted, and the older ones only afterwards.
    if (isGood) await keep(deps, workflow);
    if (!isDeepStrictEqual(workflow.status, status)) await write(deps, workflow, status);
    if (isGood) await forgetOlder(deps, workflow);
    return { requeueAfterMs: untilMs - nowMs };
  };
}

const stillCounts = (
  { uid, generation, untilMs }: Looked,
  { metadata }: AgentWorkflow,
  nowMs: number,
): boolean => uid === metadata.uid && generation === metadata.generation && nowMs < untilMs;

async function lookUp(deps: WorkflowDeps, workflow: AgentWorkflow): Promise<Looked['found']> {
  const references = await deps.references(workflow);
  const resolved = references.every(({ ok }) => ok);
  const accepted = acceptance(workflow, resolved, newestKept(workflow, deps.revisions()));
  const used = accepted.kind === 'Accepted' ? workflow : withKept(workflow, accepted.kept);
  const posts = used.spec.publish.kind === 'Note';
  const projects = await Promise.all(
    used.spec.projects.map(({ path }) => (posts ? deps.project(used, path) : { path, ready: true })),
  );
  return { references, acceptance: accepted, projects };
}

async function keep({ kube, revisions }: WorkflowDeps, workflow: AgentWorkflow): Promise<void> {
  const { uid, generation } = workflow.metadata;
  const kept = revisionsOf(uid, revisions());
  if (kept.some((one) => one.revision === generation && !isForRun(one))) return;
  try {
    await kube.create(CONTROLLER_REVISION, keptRevision(workflow));
  } catch (error) {
    // Made by us before, and not seen yet.
    if (!isKubeError(error, 'AlreadyExists')) throw error;
  }
}

/** What no new run uses, once no run under way does. */
async function forgetOlder(deps: WorkflowDeps, { metadata }: AgentWorkflow): Promise<void> {
  const { kube } = deps;
  const { uid, generation } = metadata;
  const kept = revisionsOf(uid, deps.revisions());
  const current = kept.find((one) => one.revision === generation && !isForRun(one));
  const sinceMs = Date.parse(current?.metadata.creationTimestamp ?? '');
  // Not so either while the cache does not show the newest.
  if (!(deps.clock.now().getTime() - sinceMs >= FORGET_AFTER_MS)) return;
  const inUse = deps.revisionsInUse();
  for (const one of kept) {
    const { name = '', namespace = '', ...old } = one.metadata;
    if (one === current || one.revision > (generation ?? 0) || inUse.has(name)) continue;
    await kube.delete(
      CONTROLLER_REVISION,
      { namespace, name },
      old.uid === undefined ? {} : { uid: old.uid },
    );
  }
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

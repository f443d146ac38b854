import type { PipelineEvent } from './events.ts';
import { evaluateTrigger, type Trigger, type Verdict } from './rules.ts';
import type { RunCause } from './run-name.ts';

/** What a decision must know of a workflow; an `AgentWorkflow` is one. */
export interface WorkflowView {
  readonly metadata: { readonly name?: string; readonly namespace?: string };
  readonly spec: {
    readonly suspend?: boolean | undefined;
    readonly triggers?: readonly Trigger[] | undefined;
    readonly projects?: readonly { readonly path: string }[] | undefined;
  };
}

export type SkipReason =
  | 'EventNotHandled'
  | 'NotMergeRequestPipeline'
  | 'ForeignProject'
  | 'NoWorkflow'
  | 'Suspended'
  | 'NotTriggered'
  /** GitLab tells every step of a pipeline; refusing the steps on the way is no news to anybody. */
  | 'PipelineNotFinished'
  | 'SkippedRule'
  | 'InvalidRule';

export interface CreateRun<W extends WorkflowView = WorkflowView> {
  readonly kind: 'CreateRun';
  readonly workflow: W;
  readonly cause: RunCause;
  /** Full path of the project. */
  readonly project: string;
  readonly user: PipelineEvent['user'];
  /** Which rule allowed it. */
  readonly message: string;
}

export interface Skip<W extends WorkflowView = WorkflowView> {
  readonly kind: 'Skip';
  /** Absent when the event concerns no workflow at all. */
  readonly workflow?: W;
  readonly reason: SkipReason;
  readonly message: string;
}

export type Decision<W extends WorkflowView = WorkflowView> = CreateRun<W> | Skip<W>;

/**
 * One decision for each workflow that names the event's project, or a single skip when the event can start
 * nothing whatever the workflows say. Never empty. Pure.
 */
export function decidePipeline<W extends WorkflowView>(
  event: PipelineEvent,
  workflows: readonly W[],
): readonly Decision<W>[] {
  const { mergeRequest, project } = event;
  const pipeline = `pipeline ${event.pipelineId} of ${project.path}`;
  if (event.source !== 'merge_request_event' || mergeRequest === undefined) {
    return [
      skip(
        'NotMergeRequestPipeline',
        `${pipeline} belongs to no merge request (source ${event.source || 'unknown'})`,
      ),
    ];
  }
  if (mergeRequest.targetProjectId !== project.id) {
    // The iid counts in the target project: here it would name a merge request that has nothing to do with it.
    return [
      skip(
        'ForeignProject',
        `${pipeline} ran in a fork; merge request ${mergeRequest.iid} is in project ${mergeRequest.targetProjectId}`,
      ),
    ];
  }
  const concerned = workflows.filter((workflow) =>
    workflow.spec.projects?.some(({ path }) => path === project.path),
  );
  if (concerned.length === 0) return [skip('NoWorkflow', `${pipeline}: no AgentWorkflow names this project`)];
  const subject = {
    status: event.status,
    user: event.user?.name,
    targetBranch: mergeRequest.targetBranch,
    title: mergeRequest.title,
  };
  return concerned.map((workflow) => {
    if (workflow.spec.suspend === true)
      return { ...skip('Suspended', `${pipeline}: the workflow is suspended`), workflow };
    const triggers = workflow.spec.triggers?.filter((trigger) => trigger.event === 'Pipeline') ?? [];
    if (triggers.length === 0)
      return { ...skip('NotTriggered', `${pipeline}: the workflow has no Pipeline trigger`), workflow };
    const verdicts = triggers.map((trigger) => evaluateTrigger(trigger, subject));
    const allowed = verdicts.find(({ kind }) => kind === 'Allowed');
    if (allowed === undefined) {
      const refused = verdicts.find(({ kind }) => kind === 'Invalid') ?? verdicts[0];
      return { ...skip(refusalReason(refused, event.status), `${pipeline}: ${refused?.message}`), workflow };
    }
    return {
      kind: 'CreateRun',
      workflow,
      cause: {
        workflow: workflow.metadata.name ?? '',
        projectId: project.id,
        iid: mergeRequest.iid,
        sha: event.sha,
        trigger: 'Pipeline',
        eventId: String(event.pipelineId),
      },
      project: project.path,
      user: event.user,
      message: `${pipeline} ${event.status}: ${allowed.message}`,
    };
  });
}

/** Statuses in which GitLab leaves a pipeline. */
const FINISHED = new Set(['success', 'failed', 'canceled', 'skipped']);

function refusalReason(verdict: Verdict | undefined, status: string): SkipReason {
  if (verdict?.kind === 'Invalid') return 'InvalidRule';
  return FINISHED.has(status) ? 'SkippedRule' : 'PipelineNotFinished';
}

const skip = (reason: SkipReason, message: string) => ({ kind: 'Skip', reason, message }) as const;

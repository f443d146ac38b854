import type { PipelineEvent } from '../events.ts';
import type { Decision, SkipReason, WorkflowView } from './decision.ts';
import { evaluateTrigger, type Verdict } from './rules.ts';

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

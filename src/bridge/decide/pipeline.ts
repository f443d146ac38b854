import type { PipelineEvent } from '../events/pipeline.ts';
import type { EventMergeRequest } from '../events/shapes.ts';
import { accessQuestions, denialBehind, pusher } from './access.ts';
import {
  concerning,
  type Decision,
  decided,
  nameOf,
  type Question,
  skip,
  type Verdict,
  type WorkflowView,
  type World,
} from './decision.ts';
import { couldStart, triggerVerdict } from './triggers.ts';

/**
 * One decision for each workflow that names the event's project, or a single skip when the event can start
 * nothing whatever the workflows say; after a success also one for each workflow's threads. Pure.
 */
export function decidePipeline<W extends WorkflowView>(event: PipelineEvent, world: World<W>): Verdict<W> {
  const { mergeRequest, project } = event;
  const pipeline = `pipeline ${event.pipelineId} of ${project.path}`;
  if (event.source !== 'merge_request_event' || mergeRequest === undefined) {
    return decided(
      skip(
        'NotMergeRequestPipeline',
        `${pipeline} belongs to no merge request (source ${event.source || 'unknown'})`,
      ),
    );
  }
  if (mergeRequest.targetProjectId !== project.id) {
    // The iid counts in the target project: here it would name a merge request that has nothing to do with it.
    return decided(
      skip(
        'ForeignProject',
        `${pipeline} ran in a fork; merge request ${mergeRequest.iid} is in project ${mergeRequest.targetProjectId}`,
      ),
    );
  }
  const concerned = concerning(world.workflows, project.path);
  if (concerned.length === 0)
    return decided(skip('NoWorkflow', `${pipeline}: no AgentWorkflow names this project`));

  const subject = {
    status: event.status,
    targetBranch: mergeRequest.targetBranch,
    title: mergeRequest.title,
  };
  const starts = concerned.some((workflow) => couldStart(workflow, 'Pipeline', subject));
  const questions = questionsOf(event, world, starts);
  if (questions.length > 0) return { kind: 'Ask', questions };

  const newer = newerPipeline(event, world);
  if (newer !== undefined) {
    const message = `${pipeline} is stale: the merge request is at pipeline ${newer}`;
    return decided(...concerned.map((workflow) => ({ ...skip('StalePipeline', message), workflow })));
  }
  const runs = concerned.map((workflow) => decideRun(event, mergeRequest, workflow, world));
  return decided(...resolutions(event, mergeRequest, concerned), ...runs);
}

/** A success asks whether it is the newest word; a run also asks who is behind it. */
function questionsOf(event: PipelineEvent, { facts }: World, starts: boolean): readonly Question[] {
  const succeeded = event.status === 'success';
  return [
    ...((starts || succeeded) && facts.mergeRequest === undefined ? [{ kind: 'MergeRequest' } as const] : []),
    ...(starts && facts.pushAuthor === undefined ? [{ kind: 'PushAuthor' } as const] : []),
    ...(starts ? accessQuestions(facts, [event.user, pusher(facts)]) : []),
  ];
}

function newerPipeline({ pipelineId }: PipelineEvent, { facts }: World): number | undefined {
  const head = facts.mergeRequest?.kind === 'Ok' ? facts.mergeRequest.value.headPipelineId : undefined;
  return head === pipelineId ? undefined : head;
}

/** Whatever the rules say: what the bot complained about has passed. */
function resolutions<W extends WorkflowView>(
  { status, pipelineId, project }: PipelineEvent,
  { iid }: EventMergeRequest,
  workflows: readonly W[],
): readonly Decision<W>[] {
  if (status !== 'success') return [];
  const message = `pipeline ${pipelineId} succeeded`;
  return workflows.map((workflow) => ({
    kind: 'ResolveThreads',
    workflow,
    project: project.path,
    iid,
    message,
  }));
}

function decideRun<W extends WorkflowView>(
  event: PipelineEvent,
  mergeRequest: EventMergeRequest,
  workflow: W,
  { facts }: World,
): Decision<W> {
  const { project, user, status } = event;
  const what = `pipeline ${event.pipelineId} of ${project.path}`;
  const author = pusher(facts);
  const verdict = triggerVerdict(
    workflow,
    'Pipeline',
    {
      status,
      // Whoever pushed is whose work it is; whoever started the pipeline may be a schedule or a colleague.
      user: (author ?? user)?.name,
      targetBranch: mergeRequest.targetBranch,
      title: mergeRequest.title,
    },
    what,
  );
  if (verdict.kind === 'Skip') return { ...verdict, workflow };
  const denied = denialBehind(facts, project.path, user);
  if (denied !== undefined) return { ...skip('AccessDenied', `${what}: ${denied}`), workflow };
  return {
    kind: 'CreateRun',
    workflow,
    cause: {
      workflow: nameOf(workflow),
      projectId: project.id,
      iid: mergeRequest.iid,
      sha: event.sha,
      trigger: 'Pipeline',
      eventId: String(event.pipelineId),
    },
    project: project.path,
    user,
    message: `${what} ${status}: ${verdict.message}`,
  };
}

import type { MergeRequestEvent } from '../events/merge-request.ts';
import { accessQuestions, denialBehind, pusher } from './access.ts';
import { bumpRefusal } from './bump.ts';
import {
  concerning,
  type Decision,
  decided,
  nameOf,
  skip,
  type Verdict,
  type WorkflowView,
  type World,
} from './decision.ts';
import { couldStart, triggerVerdict } from './triggers.ts';

/** What may start a run: a new merge request, and whatever makes it ready or moves its head. */
const ACTIONS = new Set(['open', 'reopen', 'update']);

/**
 * One decision for each workflow that names the event's project; after a push also one for each workflow's threads
 * about earlier commits. Neither `changes` nor the head before is asked for: the run's name holds the commit, so a
 * label that is set starts nothing, and a draft that becomes ready does. Pure.
 */
export function decideMergeRequest<W extends WorkflowView>(
  event: MergeRequestEvent,
  world: World<W>,
): Verdict<W> {
  const { mergeRequest, project, action, state, sha } = event;
  const what = `${action || 'event'} of ${project.path}!${mergeRequest.iid}`;
  if (!ACTIONS.has(action)) return decided(skip('ActionIgnored', `${what} starts nothing`));
  if (state !== '' && state !== 'opened') return decided(skip('NotOpen', `${what}: it is ${state}`));
  if (mergeRequest.targetProjectId !== project.id)
    return decided(
      skip('ForeignProject', `${what}: the merge request is in project ${mergeRequest.targetProjectId}`),
    );
  const concerned = concerning(world.workflows, project.path);
  if (concerned.length === 0)
    return decided(skip('NoWorkflow', `${what}: no AgentWorkflow names this project`));
  if (sha === undefined)
    return decided(
      ...concerned.map((workflow) => ({ ...skip('NoHead', `${what} has no head commit`), workflow })),
    );

  const { facts } = world;
  const subject = { targetBranch: mergeRequest.targetBranch, title: mergeRequest.title };
  if (!event.draft && concerned.some((workflow) => couldStart(workflow, 'MergeRequest', subject))) {
    const questions = [
      ...(facts.pushAuthor === undefined ? [{ kind: 'PushAuthor' } as const] : []),
      ...accessQuestions(facts, [event.user, pusher(facts)]),
    ];
    if (questions.length > 0) return { kind: 'Ask', questions };
  }
  return decided(
    ...(event.pushed ? concerned.map((workflow) => resolution(event, workflow, sha)) : []),
    ...concerned.map((workflow) => decideRun(event, workflow, sha, facts)),
  );
}

const resolution = <W extends WorkflowView>(
  { project, mergeRequest }: MergeRequestEvent,
  workflow: W,
  sha: string,
): Decision<W> => ({
  kind: 'ResolveThreads',
  workflow,
  project: project.path,
  iid: mergeRequest.iid,
  exceptSha: sha,
  message: `${sha.slice(0, 8)} was pushed`,
});

function decideRun<W extends WorkflowView>(
  event: MergeRequestEvent,
  workflow: W,
  sha: string,
  facts: World['facts'],
): Decision<W> {
  const { mergeRequest, project, user, action } = event;
  const what = `${action} of ${project.path}!${mergeRequest.iid}`;
  const subject = {
    user: user?.name,
    targetBranch: mergeRequest.targetBranch,
    title: mergeRequest.title,
  };
  const verdict = triggerVerdict(workflow, 'MergeRequest', subject, what);
  if (verdict.kind === 'Skip') return { ...verdict, workflow };
  const noBump = bumpRefusal(workflow, event);
  if (noBump !== undefined) return { ...skip('SkippedRule', `${what}: ${noBump}`), workflow };
  if (event.draft)
    return {
      ...skip('SkippedDraft', `${what}: it is a draft; marking it as ready starts the run`),
      workflow,
    };
  const denied = denialBehind(facts, project.path, user);
  if (denied !== undefined) return { ...skip('AccessDenied', `${what}: ${denied}`), workflow };
  return {
    kind: 'CreateRun',
    workflow,
    cause: {
      workflow: nameOf(workflow),
      projectId: project.id,
      iid: mergeRequest.iid,
      sha,
      trigger: 'MergeRequest',
      eventId: sha,
    },
    project: project.path,
    user,
    message: `${what} at ${sha.slice(0, 8)}: ${verdict.message}`,
  };
}

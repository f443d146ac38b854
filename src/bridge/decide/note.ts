import { RUN_MESSAGE_MAX } from '../../crds/agent-run.ts';
import { commandOf } from '../commands/command.ts';
import { goneText, suspendedText, tooLongText } from '../commands/texts.ts';
import type { NoteEvent } from '../events/note.ts';
import { accessQuestions } from './access.ts';
import { decideCommand, refusal, refusing } from './command.ts';
import {
  type CreateRun,
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

/**
 * What becomes of a note: a command, a reply in the thread of one of our bots, or commentary. Access is looked at
 * once it is known that the note is for us, so what people say to each other costs no lookup and gets no answer.
 * Pure.
 */
export function decideNote<W extends WorkflowView>(event: NoteEvent, world: World<W>): Verdict<W> {
  const { project, mergeRequest } = event;
  const note = `note ${event.noteId} in ${project.path}`;
  if (event.on !== 'MergeRequest' || mergeRequest === undefined)
    return decided(skip('NotMergeRequestNote', `${note} is about ${event.on || 'something else'}`));
  // An older GitLab does not say, and tells of new notes only.
  if (event.action !== 'create' && event.action !== '')
    return decided(skip('NoteNotNew', `${note}: ${event.action} of a note starts nothing`));
  if (event.system) return decided(skip('SystemNote', `${note} is GitLab's own`));
  if (mergeRequest.targetProjectId !== project.id)
    return decided(
      skip('ForeignProject', `${note}: the merge request is in project ${mergeRequest.targetProjectId}`),
    );
  const { facts, workflows } = world;
  if (botsOf(workflows).has(event.author.id))
    return decided(skip('OwnNote', `${note} was written by the bot ${event.author.name}`));
  const serving = concerning(workflows, project.path);
  if (serving.length === 0)
    return decided(skip('NoWorkflow', `${note}: no AgentWorkflow names this project`));
  const command = commandOf(event.text, world.commandPrefix);
  if (command === undefined && !event.inDiscussion)
    return decided(skip('Commentary', `${note} is addressed to no agent`));
  if (facts.self === undefined) return { kind: 'Ask', questions: [{ kind: 'Self' }] };
  if (facts.self.kind === 'Ok' && facts.self.value === event.author.id)
    return decided(skip('OwnNote', `${note} was written by the operator's own user`));
  return command === undefined
    ? decideReply(event, mergeRequest, world)
    : decideCommand(event, mergeRequest, command, { ...world, workflows: serving });
}

/** Users that our notes are written by, on any project. */
const botsOf = (workflows: readonly WorkflowView[], project?: string): ReadonlySet<number> =>
  new Set(
    workflows.flatMap(({ status }) =>
      (status?.projects ?? [])
        .filter(({ path }) => project === undefined || path === project)
        .flatMap(({ botUserId }) => (botUserId === undefined ? [] : [botUserId])),
    ),
  );

type OnMergeRequest = NonNullable<NoteEvent['mergeRequest']>;

function decideReply<W extends WorkflowView>(
  event: NoteEvent,
  mergeRequest: OnMergeRequest,
  world: World<W>,
): Verdict<W> {
  const { project, author, discussionId } = event;
  const { facts } = world;
  const note = `note ${event.noteId} in ${project.path}`;
  if (facts.thread === undefined) return { kind: 'Ask', questions: [{ kind: 'Thread', discussionId }] };
  if (facts.thread.kind === 'Refused')
    return decided(
      skip(
        'Commentary',
        `${note}: GitLab answers ${facts.thread.status} when asked for its discussion: ${facts.thread.message}`,
      ),
    );
  const bots = botsOf(world.workflows, project.path);
  const markers = facts.thread.value
    .filter((one) => !one.system && bots.has(one.authorId))
    .flatMap(({ marker, authorId }) => (marker === undefined ? [] : [{ marker, authorId }]));
  const session = markers
    .flatMap(({ marker, authorId }) =>
      marker.kind === 'Signed' || marker.kind === 'Accepted' ? [{ ...marker.marker, authorId }] : [],
    )
    .at(0);
  if (session === undefined)
    return decided(
      markers.length === 0
        ? skip('Commentary', `${note} is addressed to no agent`)
        : skip('UnknownMarker', `${note}: no marker in its discussion is signed by one of our keys`),
    );

  const questions: readonly Question[] = accessQuestions(facts, [author]);
  if (questions.length > 0) return { kind: 'Ask', questions };
  const wf = session.wf || onlyWorkflowOf(session.authorId, project.path, world.workflows);
  if (wf === undefined)
    return decided(
      skip(
        'UnknownMarker',
        `${note}: the marker in its discussion names no workflow, and its bot serves several`,
      ),
    );
  return decided(answered(event, mergeRequest, { id: session.id, wf }, world));
}

/** The oldest markers name none; mostly a workflow has a bot of its own. */
function onlyWorkflowOf(
  bot: number,
  project: string,
  workflows: readonly WorkflowView[],
): string | undefined {
  const [first, ...others] = concerning(workflows, project).filter((one) => botsOf([one], project).has(bot));
  return first === undefined || others.length > 0 ? undefined : nameOf(first);
}

/** The first valid marker of a thread counts; all of ours in one thread name the same session. */
function answered<W extends WorkflowView>(
  event: NoteEvent,
  mergeRequest: OnMergeRequest,
  session: { readonly id: string; readonly wf: string },
  world: World<W>,
): Decision<W> {
  const { project, author, noteId, discussionId, text } = event;
  const workflow = concerning(world.workflows, project.path).find((one) => nameOf(one) === session.wf);
  const refused = refusal(event, mergeRequest, world.facts, workflow);
  if (refused !== undefined) return refused;
  const refuse = refusing(event, mergeRequest, workflow);
  if (workflow === undefined)
    return refuse(
      'WorkflowGone',
      `workflow ${session.wf} does not serve the project`,
      goneText(session.wf, world.commandPrefix),
    );
  if (workflow.spec.suspend === true)
    return refuse('Suspended', 'the workflow is suspended', suspendedText(session.wf));
  const length = [...text].length;
  if (length > RUN_MESSAGE_MAX)
    return refuse('MessageTooLong', `${length} characters`, tooLongText(length, RUN_MESSAGE_MAX));
  const run: CreateRun<W> = {
    kind: 'CreateRun',
    workflow,
    cause: {
      workflow: nameOf(workflow),
      projectId: project.id,
      iid: mergeRequest.iid,
      sha: mergeRequest.sha ?? '',
      trigger: 'Reply',
      eventId: String(noteId),
    },
    project: project.path,
    user: author,
    message: `reply ${noteId} of ${author.name}`,
    request: text,
    noteId,
    session: { id: session.id, discussionId },
  };
  return run;
}

import { RUN_MESSAGE_MAX } from '../../crds/agent-run.ts';
import { isTerminal } from '../../crds/reasons.ts';
import type { Command } from '../commands/command.ts';
import { isBuiltIn, resolveWorkflow } from '../commands/resolve.ts';
import {
  ambiguousText,
  approvalText,
  cancelText,
  decidedText,
  deniedText,
  helpText,
  statusText,
  suspendedText,
  tooLongText,
  unclearText,
  unknownText,
} from '../commands/texts.ts';
import type { NoteEvent } from '../events/note.ts';
import { accessQuestions, denial } from './access.ts';
import { answeredBy, questionMeant } from './approval.ts';
import {
  type Answer,
  type Decision,
  decided,
  type Facts,
  nameOf,
  skip,
  type Verdict,
  type WorkflowView,
  type World,
} from './decision.ts';
import type { SkipReason } from './reasons.ts';

type OnMergeRequest = NonNullable<NoteEvent['mergeRequest']>;

/** What becomes of a command; `world.workflows` are those of the project. */
export function decideCommand<W extends WorkflowView>(
  event: NoteEvent,
  mergeRequest: OnMergeRequest,
  command: Command,
  world: World<W>,
): Verdict<W> {
  const questions = accessQuestions(world.facts, [event.author]);
  if (questions.length > 0) return { kind: 'Ask', questions };
  return decided(
    refusal<W>(event, mergeRequest, world.facts) ?? commanded(event, mergeRequest, command, world),
  );
}

function commanded<W extends WorkflowView>(
  event: NoteEvent,
  mergeRequest: OnMergeRequest,
  { name, rest }: Command,
  world: World<W>,
): Decision<W> {
  const { workflows, commandPrefix, runs } = world;
  const answer = (what: Answer['what'], text: string): Answer<W> => ({
    kind: 'Answer',
    to: addressOf(event, mergeRequest),
    what,
    text,
  });
  const builtIn = name === '' ? 'help' : name;
  if (!isBuiltIn(builtIn)) return started(event, mergeRequest, { name, rest }, world);
  switch (builtIn) {
    case 'help':
      return answer('Help', helpText(commandPrefix, workflows));
    case 'status':
      return answer('Status', statusText(runs));
    case 'cancel':
    case 'stop':
      return cancelled();
    case 'approve':
    case 'deny':
      return answered(builtIn);
    default:
      return builtIn satisfies never;
  }

  function answered(verdict: 'approve' | 'deny'): Decision<W> {
    const [id = ''] = rest.toLowerCase().split(/\s/);
    const before = answeredBy(event.noteId, runs);
    if (before !== undefined)
      return answer('Approval', approvalText(before.approval.tool, before.run.metadata.name ?? '', verdict));
    const asked = questionMeant(id, runs);
    switch (asked.kind) {
      case 'Found': {
        const { run, approval } = asked.answered;
        const by = `by ${event.author.name}, note ${event.noteId}`;
        return {
          ...answer('Approval', approvalText(approval.tool, run.metadata.name ?? '', verdict)),
          approval: { run, id: approval.id, text: `${verdict} ${by}` },
        };
      }
      case 'Decided': {
        const { approval, verdict: given } = asked;
        const state = given?.verdict ?? (approval.state === 'Waiting' ? 'Expired' : approval.state);
        return answer('Approval', decidedText(approval.id, approval.tool, state));
      }
      case 'Unclear':
        return answer(
          'Approval',
          unclearText(
            commandPrefix,
            asked.waiting.map(({ run, approval: { id, tool } }) => ({
              id,
              tool,
              run: run.metadata.name ?? '',
            })),
          ),
        );
      default:
        return asked satisfies never;
    }
  }

  function cancelled(): Decision<W> {
    const under = runs.filter(({ status }) => !isTerminal(status?.phase));
    const [which = ''] = rest.toLowerCase().split(/\s/);
    if (which === '') return { ...answer('Cancel', cancelText(under, undefined)), cancel: under };
    const found = resolveWorkflow(which, workflows);
    if (found.kind !== 'Found') return unresolved(event, mergeRequest, which, found, world);
    const whose = nameOf(found.workflow);
    const its = under.filter(({ spec }) => spec.workflowRef.name === whose);
    return { ...answer('Cancel', cancelText(its, whose)), cancel: its };
  }
}

function started<W extends WorkflowView>(
  event: NoteEvent,
  mergeRequest: OnMergeRequest,
  { name, rest }: Command,
  world: World<W>,
): Decision<W> {
  const { project, author, noteId } = event;
  const found = resolveWorkflow(name, world.workflows);
  if (found.kind !== 'Found') return unresolved(event, mergeRequest, name, found, world);
  const { workflow } = found;
  const refuse = refusing(event, mergeRequest, workflow);
  if (workflow.spec.suspend === true)
    return refuse('Suspended', 'the workflow is suspended', suspendedText(nameOf(workflow)));
  const length = [...rest].length;
  if (length > RUN_MESSAGE_MAX)
    return refuse('MessageTooLong', `${length} characters`, tooLongText(length, RUN_MESSAGE_MAX));
  return {
    kind: 'CreateRun',
    workflow,
    cause: {
      workflow: nameOf(workflow),
      projectId: project.id,
      iid: mergeRequest.iid,
      sha: mergeRequest.sha ?? '',
      trigger: 'Command',
      eventId: String(noteId),
    },
    project: project.path,
    user: author,
    message: `command ${noteId} of ${author.name}`,
    noteId,
    ...(rest === '' ? {} : { request: rest }),
  };
}

function unresolved<W extends WorkflowView>(
  event: NoteEvent,
  mergeRequest: OnMergeRequest,
  name: string,
  found: Exclude<ReturnType<typeof resolveWorkflow<W>>, { readonly kind: 'Found' }>,
  { workflows, commandPrefix }: World<W>,
): Decision<W> {
  const refuse = refusing<W>(event, mergeRequest, undefined);
  return found.kind === 'Ambiguous'
    ? refuse(
        'AmbiguousCommand',
        'several workflows begin so',
        ambiguousText(name, commandPrefix, found.workflows),
      )
    : refuse(
        'UnknownCommand',
        'no workflow of the project is called so',
        unknownText(name, commandPrefix, workflows),
      );
}

/** The answer to somebody who is no Developer; undefined for those who are. */
export function refusal<W extends WorkflowView>(
  event: NoteEvent,
  mergeRequest: OnMergeRequest,
  facts: Facts,
  workflow?: W,
): Answer<W> | undefined {
  const { project, author } = event;
  const denied = denial(facts, project.path, author);
  return denied === undefined
    ? undefined
    : refusing(event, mergeRequest, workflow)('AccessDenied', denied, deniedText(project.path));
}

/** Makes the refusals of one note: recorded with their reason, and answered. */
export const refusing =
  <W extends WorkflowView>(event: NoteEvent, mergeRequest: OnMergeRequest, workflow: W | undefined) =>
  (reason: SkipReason, why: string, text: string): Answer<W> => ({
    kind: 'Answer',
    to: addressOf(event, mergeRequest),
    what: 'Refusal',
    text,
    skip: {
      ...skip(reason, `note ${event.noteId} in ${event.project.path}: ${why}`),
      ...(workflow === undefined ? {} : { workflow }),
    },
  });

const addressOf = ({ project, discussionId, noteId }: NoteEvent, { iid }: OnMergeRequest): Answer['to'] => ({
  project: project.path,
  iid,
  discussionId,
  noteId,
});

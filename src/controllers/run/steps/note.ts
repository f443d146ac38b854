import type { AgentRunStatus } from '../../../crds/agent-run.ts';
import type { Marker, NoteOutcome, NoteRef, Notes } from '../../../notes/port.ts';
import { conditionOf } from '../../conditions.ts';
import { type RunResult, readResult } from '../result.ts';
import { isAutomatic } from '../rivals.ts';
import type { StepContext, StepResult } from '../step.ts';
import { nextStatus, sessionIdOf, withOutcome } from '../step.ts';
import { expiredText, failureText, placeholderText, resultText } from '../texts.ts';
import { EXPIRED } from './resume.ts';

const FRESH_MS = 2_000;
/** How long the note waits for a store that does not give the answer. */
const STORE_PATIENCE_MS = 2 * 60_000;

/**
 * The run's only POST, unless GitLab is away until the end (see updateNote). Its intent is in the status already, so
 * a note may exist whose id was never recorded: the bot's own notes are searched for this run's marker first.
 */
export async function postPlaceholder(context: StepContext): Promise<StepResult> {
  const { deps, run } = context;
  const notes = await notesOf(context);
  if (typeof notes === 'string') return withOutcome(context, 'InvalidSpec', notes, {}, refused(notes));
  const fresh = isFresh(context);
  const found = fresh ? undefined : await notes.findByRun(run.spec.mergeRequest, uidOf(context));
  if (found?.kind === 'Ok' && found.value !== undefined) return noted(context, found.value, 'Found');
  const posted =
    found?.kind === 'Refused'
      ? found
      : await notes.create(run.spec.mergeRequest, {
          ...placeOf(context),
          text: placeholderText(run.spec.workflowRef.name),
          marker: markerOf(context),
        });
  if (posted.kind === 'Refused') {
    const message = `GitLab answers ${posted.status} to the note on ${target(context)}: ${posted.message}; check the project's action token`;
    deps.events.record(run, 'Warning', 'NoteRefused', message);
    return withOutcome(context, 'AccessDenied', message, {}, refused(message));
  }
  return noted(context, posted.value, 'Posted');
}

/**
 * Puts the result, or the reason why there is none, in the place of the placeholder. The first failure is recorded
 * and the run goes on with its other steps; later ones are thrown, so that the queue's backoff paces them.
 */
export async function updateNote(context: StepContext): Promise<StepResult> {
  try {
    return await tellOutcome(context);
  } catch (error) {
    if (conditionOf(context.run.status?.conditions, 'NotePosted')?.reason === 'Retrying') throw error;
    const message = `The note on ${target(context)} could not be updated and is tried again: ${messageOf(error)}`;
    context.deps.events.record(context.run, 'Warning', 'NoteRetry', message);
    return {
      status: nextStatus(context, {}, { type: 'NotePosted', status: 'Unknown', reason: 'Retrying', message }),
    };
  }
}

async function tellOutcome(context: StepContext): Promise<StepResult> {
  const { deps, run } = context;
  const outcome = run.status?.outcome;
  if (outcome === undefined) throw new Error(`AgentRun ${run.metadata.name}: no outcome to report`);
  const notes = await notesOf(context);
  if (typeof notes === 'string') return { status: nextStatus(context, {}, refused(notes)) };
  const known = await knownNote(context, notes);
  if (known.kind === 'Refused') return refusedUpdate(context, known);
  const ref = known.value;
  if (ref === undefined && (outcome.reason === 'Cancelled' || outcome.reason === 'Superseded')) {
    const message = 'The run was ended before its placeholder was posted';
    return { status: nextStatus(context, {}, refused(message)) };
  }
  const note = { text: deps.redact(await outcomeText(context, outcome)), marker: markerOf(context) };
  // GitLab was away while the run worked: this is its only POST, and its search came back empty just now.
  const updated =
    ref === undefined
      ? await notes.create(run.spec.mergeRequest, { ...placeOf(context), ...note })
      : await notes.update(run.spec.mergeRequest, ref, note);
  if (updated.kind === 'Refused') return refusedUpdate(context, updated, ref);
  deps.events.record(run, 'Normal', 'NoteUpdated', `Reported ${outcome.reason} at ${updated.value.url}`);
  return {
    status: nextStatus(
      context,
      { note: updated.value },
      {
        type: 'NotePosted',
        status: 'True',
        reason: 'Posted',
        message: updated.value.url,
      },
    ),
  };
}

/** The recorded note, or the one whose record was lost. */
async function knownNote(context: StepContext, notes: Notes): Promise<NoteOutcome<NoteRef | undefined>> {
  const { run } = context;
  if (run.status?.note !== undefined) return { kind: 'Ok', value: run.status.note };
  return notes.findByRun(run.spec.mergeRequest, uidOf(context));
}

async function outcomeText(
  context: StepContext,
  outcome: NonNullable<AgentRunStatus['outcome']>,
): Promise<string> {
  const { deps, run } = context;
  if (conditionOf(run.status?.conditions, 'SessionSaved')?.reason === EXPIRED)
    return expiredText(run.spec.workflowRef.name);
  const message = outcome.message ?? '';
  let result: RunResult | undefined;
  try {
    result = await readResult(context);
  } catch (error) {
    // A store that is down may come back; not for ever, since the reason alone is worth more than a placeholder.
    if (deps.clock.now().getTime() - Date.parse(outcome.time) < STORE_PATIENCE_MS) throw error;
    return failureText(outcome.reason, `${message}. The answer at ${outcome.key} cannot be read now.`);
  }
  if (result?.reported !== true)
    return failureText(outcome.reason, result?.text ?? message, result?.transcriptExcerpt);
  return resultText({
    answer: result.text,
    reason: outcome.reason,
    message,
    model: run.status?.model ?? 'unknown',
    transcript: result.transcriptExcerpt,
    // What became of a bump is no conversation: a command looks at it again.
    invitesReply: run.spec.sessionRef === undefined && context.workflow?.spec.delivery === undefined,
  });
}

function refusedUpdate(
  context: StepContext,
  answer: Extract<NoteOutcome<unknown>, { readonly kind: 'Refused' }>,
  note?: NoteRef,
): StepResult {
  const which = note === undefined ? 'the note' : `the update of note ${note.noteId}`;
  const message = `GitLab answers ${answer.status} to ${which} on ${target(context)}: ${answer.message}; check the project's action token`;
  context.deps.events.record(context.run, 'Warning', 'NoteRefused', message);
  return { status: nextStatus(context, note === undefined ? {} : { note }, refused(message)) };
}

/**
 * An intent that this process wrote just now and has not acted on needs no search. Not so when the process stood
 * still in between: from 3 s on (a Lease of 10 s, given up after 7 s) another holder may have posted.
 */
function isFresh(context: StepContext): boolean {
  const { local, deps } = context;
  const since = local.freshIntents.get(uidOf(context));
  local.freshIntents.delete(uidOf(context));
  return since !== undefined && deps.clock.monotonicMs() - since < FRESH_MS;
}

export async function notesOf({ deps, run, workflow }: StepContext): Promise<Notes | string> {
  if (workflow === undefined)
    return `AgentWorkflow ${run.spec.workflowRef.name} is gone, and with it the token for notes`;
  const token = await deps.actionToken(workflow, run.spec.mergeRequest.project);
  return token.kind === 'Ok'
    ? deps.notes.notesFor(run.spec.mergeRequest.project, token.value)
    : token.message;
}

function noted(context: StepContext, note: NoteRef, how: 'Posted' | 'Found'): StepResult {
  context.deps.events.record(
    context.run,
    'Normal',
    `Placeholder${how}`,
    `Note ${note.noteId} at ${note.url}`,
  );
  return {
    status: nextStatus(
      context,
      { note },
      {
        type: 'NotePosted',
        status: 'True',
        reason: 'Placeholder',
        message: note.url,
      },
    ),
  };
}

const refused = (message: string) =>
  ({ type: 'NotePosted', status: 'False', reason: 'Refused', message }) as const;

/** Where a note of this run goes, and who may see it. */
const placeOf = ({ run, effective }: StepContext) => ({
  internal: effective.internalNote,
  ...(run.spec.trigger.discussionId === undefined ? {} : { discussionId: run.spec.trigger.discussionId }),
});

export const markerOf = (context: StepContext): Marker => ({
  id: sessionIdOf(context.run),
  wf: context.run.spec.workflowRef.name,
  // Its presence says that the run counts: for the limit on the merge request, and as the look at this commit.
  ...(isAutomatic(context.run) && context.run.status?.sha !== undefined
    ? { sha: context.run.status.sha }
    : {}),
  run: uidOf(context),
});

const uidOf = ({ run }: StepContext): string => run.metadata.uid ?? '';
export const target = ({ run }: StepContext): string =>
  `${run.spec.mergeRequest.project}!${run.spec.mergeRequest.iid}`;
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

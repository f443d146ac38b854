import type { AgentRunStatus } from '../../../crds/agent-run.ts';
import type { Marker, NoteRef, Notes } from '../../../notes/port.ts';
import { readResult } from '../result.ts';
import type { StepContext, StepResult } from '../step.ts';
import { nextStatus, sessionIdOf, withOutcome } from '../step.ts';
import { failureText, placeholderText, resultText } from '../texts.ts';

/**
 * The run's only POST. Its intent is in the status already, so a note may exist whose id was never recorded:
 * the bot's own notes are searched for this run's marker before anything is posted.
 */
export async function postPlaceholder(context: StepContext): Promise<StepResult> {
  const { deps, run } = context;
  const notes = await notesOf(context);
  if (typeof notes === 'string') return withOutcome(context, 'InvalidSpec', notes, {}, refused(notes));
  // An intent that this process wrote just now and has not acted on needs no search.
  const fresh = context.local.freshIntents.delete(uidOf(context));
  const found = fresh ? undefined : await notes.findByRun(run.spec.mergeRequest, uidOf(context));
  if (found?.kind === 'Ok' && found.value !== undefined) return noted(context, found.value, 'Found');
  const posted =
    found?.kind === 'Refused'
      ? found
      : await notes.create(run.spec.mergeRequest, {
          text: placeholderText(run.spec.workflowRef.name),
          marker: markerOf(context),
          internal: context.effective.internalNote,
          ...(run.spec.trigger.discussionId === undefined
            ? {}
            : { discussionId: run.spec.trigger.discussionId }),
        });
  if (posted.kind === 'Refused') {
    const message = `GitLab answers ${posted.status} to the note on ${target(context)}: ${posted.message}; check the project's action token`;
    deps.events.record(run, 'Warning', 'NoteRefused', message);
    return withOutcome(context, 'AccessDenied', message, {}, refused(message));
  }
  return noted(context, posted.value, 'Posted');
}

/** Puts the result, or the reason why there is none, in the place of the placeholder. Only ever a PUT. */
export async function updateNote(context: StepContext): Promise<StepResult> {
  const { deps, run } = context;
  const outcome = run.status?.outcome;
  if (outcome === undefined) throw new Error(`AgentRun ${run.metadata.name}: no outcome to report`);
  const notes = await notesOf(context);
  if (typeof notes === 'string') return { status: nextStatus(context, {}, refused(notes)) };
  const ref = await knownNote(context, notes);
  if (ref === undefined) {
    const message = 'The run ended before its placeholder was posted';
    return { status: nextStatus(context, {}, refused(message)) };
  }
  const result = await readResult(context);
  const text =
    result?.reported !== true
      ? failureText(outcome.reason, result?.text ?? outcome.message ?? '')
      : resultText({
          answer: result.text,
          reason: outcome.reason,
          message: outcome.message ?? '',
          model: run.status?.model ?? 'unknown',
          transcript: result.transcriptExcerpt,
        });
  const updated = await notes.update(run.spec.mergeRequest, ref, {
    text: deps.redact(text),
    marker: markerOf(context),
  });
  if (updated.kind === 'Refused') {
    const message = `GitLab answers ${updated.status} to the update of note ${ref.noteId} on ${target(context)}: ${updated.message}`;
    deps.events.record(run, 'Warning', 'NoteRefused', message);
    return { status: nextStatus(context, { note: ref }, refused(message)) };
  }
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
async function knownNote(context: StepContext, notes: Notes): Promise<NoteRef | undefined> {
  const { run } = context;
  if (run.status?.note !== undefined) return run.status.note;
  const found = await notes.findByRun(run.spec.mergeRequest, uidOf(context));
  return found.kind === 'Ok' ? found.value : undefined;
}

async function notesOf({ deps, run, workflow }: StepContext): Promise<Notes | string> {
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
  const sandbox: Partial<AgentRunStatus> = { note };
  return {
    status: nextStatus(context, sandbox, {
      type: 'NotePosted',
      status: 'True',
      reason: 'Placeholder',
      message: note.url,
    }),
  };
}

const refused = (message: string) =>
  ({ type: 'NotePosted', status: 'False', reason: 'Refused', message }) as const;

const markerOf = (context: StepContext): Marker => ({
  id: sessionIdOf(context.run),
  wf: context.run.spec.workflowRef.name,
  ...(context.run.status?.sha === undefined ? {} : { sha: context.run.status.sha }),
  run: uidOf(context),
});

const uidOf = ({ run }: StepContext): string => run.metadata.uid ?? '';
const target = ({ run }: StepContext): string =>
  `${run.spec.mergeRequest.project}!${run.spec.mergeRequest.iid}`;

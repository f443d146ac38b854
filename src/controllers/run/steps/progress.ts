import { waitingCalls } from '../approvals.ts';
import { nextStatus, type StepContext, type StepResult } from '../step.ts';
import { approvalText, progressText } from '../texts.ts';
import { markerOf, notesOf, target } from './note.ts';

/**
 * Another holder may have the run 3 s after this one should have given it up, and its final text may stand: what
 * is announced is sent within two, and takes no longer than five.
 */
const FRESH_MS = 2_000;
const EDIT_TIMEOUT_MS = 5_000;

/** The fence of an edit: a holder that was replaced cannot write this, and so does not touch the note. */
export function announceProgress(context: StepContext): StepResult {
  const { deps, local, run } = context;
  const { uid = '' } = run.metadata;
  return {
    written() {
      local.progress.set(uid, { ...local.progress.get(uid), announcedMs: deps.clock.monotonicMs() });
    },
    status: nextStatus(context, { noteProgressTime: deps.clock.now().toISOString() }),
  };
}

/** Edits the placeholder. Best effort: what fails is tried again in a minute, and costs the run nothing. */
export async function showProgress(context: StepContext): Promise<StepResult> {
  const { deps, local, run, workflow, signal } = context;
  const { uid = '' } = run.metadata;
  const { announcedMs = 0, told, refused } = local.progress.get(uid) ?? {};
  const before = { ...(told !== undefined && { told }), ...(refused && { refused }) };
  local.progress.set(uid, before);
  const ref = run.status?.note;
  if (workflow === undefined || ref === undefined || deps.clock.monotonicMs() - announcedMs >= FRESH_MS)
    return {};
  try {
    const notes = await notesOf(context);
    if (typeof notes === 'string') return {};
    const limit = AbortSignal.any([signal, AbortSignal.timeout(EDIT_TIMEOUT_MS)]);
    const waiting = waitingCalls(run, local.executions.get(uid)?.questions);
    const parts = [textOf(context), approvalText(waiting, deps.commandPrefix)];
    const text = deps.redact(parts.filter(Boolean).join('\n\n'));
    const edited = await notes.update(run.spec.mergeRequest, ref, { text, marker: markerOf(context) }, limit);
    if (edited.kind === 'Ok') {
      local.progress.set(uid, { told: run.status?.checkpoint?.sequence ?? 0 });
      return {};
    }
    local.progress.set(uid, { ...before, refused: true });
    const message = `GitLab answers ${edited.status} to an edit of note ${ref.noteId} on ${target(context)}: ${edited.message}; no more progress is shown`;
    deps.events.record(run, 'Warning', 'ProgressRefused', message);
  } catch (error) {
    signal.throwIfAborted();
    deps.log.warn({ run: run.metadata.name, err: error }, 'the progress could not be shown on the note');
  }
  return {};
}

function textOf({ deps, local, run }: StepContext): string {
  const { iterations = 0, toolCalls = 0, costUSD } = run.status ?? {};
  return progressText(run.spec.workflowRef.name, {
    iterations,
    toolCalls,
    ...(costUSD === undefined ? {} : { costUSD }),
    tools: local.lately.get(run.metadata.uid ?? '') ?? [],
    at: deps.clock.now(),
  });
}

import { type Approval, verdictOn } from '../../../crds/approval.ts';
import { msToAnswer, type Questions, waitingCalls } from '../approvals.ts';
import { nextStatus, type StepContext, type StepResult } from '../step.ts';
import { approvalText, placeholderText } from '../texts.ts';
import { markerOf, notesOf, target } from './note.ts';

/** Reason of `Succeeded` while a call waits for somebody's answer. */
const AWAITS_APPROVAL = 'AwaitingApproval';
/** As long as nobody else can hold the run, with time left for the request. */
const FRESH_MS = 2_000;
const EDIT_TIMEOUT_MS = 5_000;

/** Writes the loop's new questions into the status, before anybody is told of them. */
export function askApprovals(context: StepContext): StepResult {
  const { deps, run } = context;
  const before = run.status?.approvals ?? [];
  const asked = (questionsOf(context)?.open ?? []).filter(({ id }) => before.every((one) => one.id !== id));
  const requestTime = deps.clock.now().toISOString();
  const approvals = [
    ...before,
    ...asked.map(({ allArguments: _long, ...one }): Approval => ({ ...one, state: 'Waiting', requestTime })),
  ];
  return {
    ...written(context, approvals),
    written() {
      announce(context);
      for (const { id, tool } of asked)
        deps.events.record(
          run,
          'Warning',
          'ApprovalRequired',
          `${tool} waits: ${deps.commandPrefix} approve ${id} on ${target(context)}, or the annotation approval.hummingbird.dev/${id}=approve; deny refuses it`,
        );
    },
  };
}

/** Takes the answers that are there, and refuses what nobody has answered in time; then the loop goes on. */
export function settleApprovals(context: StepContext): StepResult {
  const { deps, run, effective } = context;
  const now = deps.clock.now();
  const isLate = msToAnswer(run, effective.timeoutMs, now) <= 0;
  const before = run.status?.approvals ?? [];
  const open = new Set(questionsOf(context)?.open.map(({ id }) => id));
  const approvals = before.map((approval) => {
    if (approval.state !== 'Waiting' || !open.has(approval.id)) return approval;
    const decided = decisionOn(context, approval, isLate);
    if (decided === undefined) return approval;
    const { told: _stale, ...rest } = approval;
    return { ...rest, ...decided, decisionTime: now.toISOString() };
  });
  const handOver = (): void => {
    for (const approval of approvals) questionsOf(context)?.settle(approval);
  };
  const changed = approvals.filter((approval, index) => approval !== before[index]);
  if (changed.length === 0) {
    // The answer was written, and whoever wrote it did not come to hand it over.
    handOver();
    return {};
  }
  return {
    ...written(context, approvals),
    written() {
      announce(context);
      handOver();
      for (const { id, tool, state, by } of changed) {
        deps.metrics.approval(run.spec.workflowRef.name, state);
        const who = by === undefined || by === '' ? '' : ` by ${by}`;
        deps.events.record(run, 'Normal', 'ApprovalDecided', `${tool} (${id}): ${state}${who}`);
      }
    },
  };
}

/**
 * Lets the note say what is waited for. The edit follows a write of the status at once: a holder that was replaced
 * cannot write it, and so does not touch a note that may hold the result by now.
 */
export async function tellApprovals(context: StepContext): Promise<StepResult> {
  const { deps, run, signal } = context;
  const questions = questionsOf(context);
  const approvals = run.status?.approvals ?? [];
  const ref = run.status?.note;
  if (questions === undefined || ref === undefined) return {};
  const { announcedMs } = questions;
  questions.announcedMs = undefined;
  if (announcedMs === undefined || deps.clock.monotonicMs() - announcedMs >= FRESH_MS)
    return {
      status: nextStatus(context, { noteProgressTime: deps.clock.now().toISOString() }),
      written: () => announce(context),
    };
  const notes = await notesOf(context);
  if (typeof notes === 'string') throw new Error(notes);
  const waiting = waitingCalls(run, questions);
  const text = [placeholderText(run.spec.workflowRef.name), approvalText(waiting, deps.commandPrefix)];
  const edited = await notes.update(
    run.spec.mergeRequest,
    ref,
    { text: deps.redact(text.filter(Boolean).join('\n\n')), marker: markerOf(context) },
    AbortSignal.any([signal, AbortSignal.timeout(EDIT_TIMEOUT_MS)]),
  );
  if (edited.kind === 'Refused')
    deps.events.record(
      run,
      'Warning',
      'NoteRefused',
      `GitLab answers ${edited.status} to an edit of note ${ref.noteId} on ${target(context)}: ${edited.message}; the questions of this run are in its status`,
    );
  return { status: nextStatus(context, { approvals: approvals.map((one) => ({ ...one, told: true })) }) };
}

function decisionOn(
  { run }: StepContext,
  { id }: Approval,
  isLate: boolean,
): Pick<Approval, 'state' | 'by'> | undefined {
  const verdict = verdictOn(run, id);
  if (verdict !== undefined) return { state: verdict.verdict, ...(verdict.by !== '' && { by: verdict.by }) };
  return isLate ? { state: 'Expired' } : undefined;
}

/** The status with these questions, and a reason that says whether somebody is waited for. */
function written(context: StepContext, approvals: readonly Approval[]): Pick<StepResult, 'status'> {
  const waiting = approvals.filter(({ state }) => state === 'Waiting');
  const [first] = waiting;
  const status = { type: 'Succeeded', status: 'Unknown' } as const;
  const condition =
    first === undefined
      ? { ...status, reason: 'Running', message: `${context.run.status?.model ?? 'The model'} is at work` }
      : { ...status, reason: AWAITS_APPROVAL, message: `${first.tool} waits for approval ${first.id}` };
  return { status: nextStatus(context, { approvals: [...approvals] }, condition) };
}

function announce(context: StepContext): void {
  const questions = questionsOf(context);
  if (questions !== undefined) questions.announcedMs = context.deps.clock.monotonicMs();
}

const questionsOf = ({ local, run }: StepContext): Questions | undefined =>
  local.executions.get(run.metadata.uid ?? '')?.questions;

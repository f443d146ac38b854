import type { AgentRun } from '../../crds/agent-run.ts';
import { RUN_FINALIZER } from '../../crds/meta.ts';
import type { RunReason } from '../../crds/reasons.ts';
import { isTerminal } from '../../crds/reasons.ts';
import { conditionOf, isTrue } from '../conditions.ts';
import { type ApprovalsView, msToAnswer } from './approvals.ts';
import type { ProgressNote } from './progress.ts';
import type { Rivalry } from './rivals.ts';
import { phaseOf } from './steps/end.ts';

/** What this process knows of the run's agent loop. */
export type ExecutionState =
  | { readonly kind: 'None' }
  /** `unrecorded`: a checkpoint is in the store that the status does not name yet. */
  | { readonly kind: 'Running'; readonly unrecorded: boolean; readonly approvals?: ApprovalsView }
  | { readonly kind: 'Finished' };

/** The conversation that the run goes on with. */
export type SessionState =
  /** It goes on with none. */
  | { readonly kind: 'New' }
  /** Runs of one session are serial: this one comes before. */
  | {
      readonly kind: 'Behind';
      readonly run: string;
      /** One before it whose note does not stand yet. */
      readonly untold?: string;
    }
  | { readonly kind: 'ToOpen' }
  | { readonly kind: 'Open' };

/** Everything that a decision rests on; gathered by `observe`. */
export interface Observed {
  readonly run: AgentRun;
  readonly execution: ExecutionState;
  /** Whether this process has the handle of the run's sandbox. */
  readonly holdsSandbox: boolean;
  readonly session: SessionState;
  readonly rivalry: Rivalry;
  readonly progress: ProgressNote;
  /** This process as holders are named. */
  readonly self: string;
  /** Whether the replica that holds the run renews its Lease; false when nobody holds it. */
  readonly holderAlive: boolean;
  /** Why this process's last try of a step failed; undefined when it went well. */
  readonly lastFailure?: string | undefined;
  readonly publishesNote: boolean;
  readonly usesSandbox: boolean;
  readonly timeoutMs: number;
  readonly ttlMs: { readonly success: number; readonly failure: number };
}

/** One step towards a terminal phase. Each is safe to repeat: the operator may die in the middle of any. */
export type Step =
  | { readonly kind: 'Done' }
  | { readonly kind: 'Wait'; readonly ms?: number }
  | { readonly kind: 'AddFinalizer' }
  | { readonly kind: 'RemoveFinalizer' }
  | { readonly kind: 'DeleteRun' }
  | { readonly kind: 'TakeHold' }
  | { readonly kind: 'Admit' }
  | { readonly kind: 'PostPlaceholder' }
  /** The placeholder and the sandbox, side by side. */
  | { readonly kind: 'Prepare' }
  | { readonly kind: 'AwaitTurn'; readonly behind: string }
  | { readonly kind: 'BeginTurn' }
  | { readonly kind: 'OpenSession' }
  | { readonly kind: 'ClaimSandbox' }
  | { readonly kind: 'StartLoop' }
  | { readonly kind: 'RecordProgress' }
  /** A call of the loop waits for somebody: the question, its answer, and what the note says of them. */
  | { readonly kind: 'AskApprovals' }
  | { readonly kind: 'SettleApprovals' }
  | { readonly kind: 'TellApprovals' }
  /** The fence, then the edit of the note. */
  | { readonly kind: 'AnnounceProgress' }
  | { readonly kind: 'ShowProgress' }
  | { readonly kind: 'StopLoop'; readonly reason: 'Cancelled' | 'Superseded' | 'Timeout' | 'Fenced' }
  | { readonly kind: 'SetOutcome'; readonly reason: RunReason; readonly message: string }
  | { readonly kind: 'TakeResult' }
  | { readonly kind: 'UpdateNote' }
  | { readonly kind: 'SaveSession' }
  | { readonly kind: 'LingerSandbox' }
  | { readonly kind: 'ReleaseSandbox' }
  | { readonly kind: 'Finish' };

/** Reason of `Succeeded` while earlier runs of the session, or of the workflow on the merge request, are at work. */
export const AWAITS_TURN = 'AwaitingTurn';
/** Reason of `SandboxReady` when the run's sandbox waits for the session's next run. */
export const LINGERS = 'Lingering';
/** How long the note and the session are tried after the outcome before the run ends without them. */
export const REPORT_PATIENCE_MS = 30 * 60_000;
export const SAVE_PATIENCE_MS = 2 * 60_000;
/** The same for the note of a run that is being deleted: its namespace may wait for it. */
export const DELETED_REPORT_PATIENCE_MS = 2 * 60_000;
/** How often a run that another replica holds is looked at again; with the Lease's 15 s this keeps failover under 20 s. */
const FOREIGN_HOLD_POLL_MS = 3_000;

/** The next step of a run. Pure: all the cleverness of this controller is here. */
export function decide(observed: Observed, now: Date): Step {
  const { run } = observed;
  const deleted = run.metadata.deletionTimestamp !== undefined;
  const guarded = run.metadata.finalizers?.includes(RUN_FINALIZER) ?? false;

  if (run.status?.phase !== undefined && isTerminal(run.status.phase)) return decideEnded(observed, now);
  if (deleted && !guarded) return { kind: 'Done' };
  if (!guarded) return { kind: 'AddFinalizer' };
  if (!isHeldBySelf(observed)) {
    if (observed.execution.kind === 'Running') return { kind: 'StopLoop', reason: 'Fenced' };
    if (observed.holderAlive) return { kind: 'Wait', ms: FOREIGN_HOLD_POLL_MS };
    return { kind: 'TakeHold' };
  }
  if (run.status?.outcome === undefined) return decideWork(observed, now);
  return decideReport(observed, now, run.status.outcome);
}

function isHeldBySelf({ run, self }: Observed): boolean {
  return run.status?.holder?.replica === self;
}

/** Terminal stays terminal: what is left is the finalizer and, later, the object itself. */
function decideEnded({ run, ttlMs, execution }: Observed, now: Date): Step {
  // Another holder has finished it: what this process still does is for nobody.
  if (execution.kind === 'Running') return { kind: 'StopLoop', reason: 'Fenced' };
  if (run.metadata.finalizers?.includes(RUN_FINALIZER)) return { kind: 'RemoveFinalizer' };
  if (run.metadata.deletionTimestamp !== undefined || run.status?.completionTime === undefined)
    return { kind: 'Done' };
  const { phase } = run.status;
  const ttl = phase === 'Succeeded' || phase === 'Skipped' ? ttlMs.success : ttlMs.failure;
  const left = Date.parse(run.status.completionTime) + ttl - now.getTime();
  return left <= 0 ? { kind: 'DeleteRun' } : { kind: 'Wait', ms: left };
}

/** Before the outcome: stop rules first, then the steps in their order. */
function decideWork(observed: Observed, now: Date): Step {
  const { run, execution } = observed;
  const stop = stopReason(observed, now);
  if (stop !== undefined) {
    if (execution.kind === 'Running') return { kind: 'StopLoop', reason: stop.stopLoop };
    // A loop that ended before the stop was seen has an answer: partial over nothing.
    if (execution.kind === 'Finished') return { kind: 'TakeResult' };
    return { kind: 'SetOutcome', reason: stop.reason, message: stop.message };
  }
  if (observed.rivalry.kind === 'Duplicate')
    return {
      kind: 'SetOutcome',
      reason: 'SkippedDuplicate',
      message: `AgentRun ${observed.rivalry.of} of the same workflow is under way on the merge request`,
    };
  if (!isTrue(run.status?.conditions, 'Admitted')) return { kind: 'Admit' };
  const { session } = observed;
  if (session.kind === 'Behind' && session.untold !== undefined)
    return { kind: 'AwaitTurn', behind: session.untold };
  if (observed.publishesNote && run.status?.note === undefined)
    return { kind: claimsAtOnce(observed) ? 'Prepare' : 'PostPlaceholder' };
  if (execution.kind === 'Finished') return { kind: 'TakeResult' };
  if (execution.kind === 'Running')
    return execution.unrecorded
      ? { kind: 'RecordProgress' }
      : whileAtWork(observed, execution.approvals ?? NO_APPROVALS, now);
  // Before a sandbox stands idle for it.
  const behind = runAhead(observed);
  if (behind !== undefined) return { kind: 'AwaitTurn', behind };
  if (observed.session.kind === 'ToOpen') return { kind: 'OpenSession' };
  if (observed.session.kind === 'New' && hasWaited(run)) return { kind: 'BeginTurn' };
  if (observed.usesSandbox && !observed.holdsSandbox) return { kind: 'ClaimSandbox' };
  return { kind: 'StartLoop' };
}

const NO_APPROVALS: ApprovalsView = { need: undefined, waiting: false };

function whileAtWork(observed: Observed, { need, waiting }: ApprovalsView, now: Date): Step {
  const { progress, run, timeoutMs } = observed;
  const answerMs = waiting ? msToAnswer(run, timeoutMs, now) : Number.POSITIVE_INFINITY;
  if (need === 'Settle' || answerMs <= 0) return { kind: 'SettleApprovals' };
  if (need === 'Ask') return { kind: 'AskApprovals' };
  if (need === 'Tell') return { kind: 'TellApprovals' };
  if (progress.kind === 'Due') return { kind: 'AnnounceProgress' };
  if (progress.kind === 'Announced') return { kind: 'ShowProgress' };
  const ms = msToDeadline(observed, now);
  return { kind: 'Wait', ms: Math.min(ms, progress.ms ?? ms, answerMs) };
}

/** A run that goes on with a session may have to wait for its turn, and takes no sandbox until then. */
function claimsAtOnce(observed: Observed): boolean {
  const { execution, session, usesSandbox, holdsSandbox } = observed;
  if (runAhead(observed) !== undefined) return false;
  return execution.kind === 'None' && session.kind === 'New' && usesSandbox && !holdsSandbox;
}

/** Whom the run waits for, before a sandbox stands idle for it. */
const runAhead = ({ session, rivalry }: Observed): string | undefined => {
  if (session.kind === 'Behind') return session.run;
  return rivalry.kind === 'Behind' ? rivalry.run : undefined;
};

const hasWaited = ({ status }: AgentRun): boolean =>
  conditionOf(status?.conditions, 'Succeeded')?.reason === AWAITS_TURN;

interface Stop {
  readonly reason: RunReason;
  readonly message: string;
  readonly stopLoop: 'Cancelled' | 'Superseded' | 'Timeout';
}

function stopReason(observed: Observed, now: Date): Stop | undefined {
  const { run, timeoutMs } = observed;
  if (run.metadata.deletionTimestamp !== undefined)
    return { reason: 'Cancelled', message: 'The AgentRun was deleted', stopLoop: 'Cancelled' };
  if (run.spec.cancel) return { reason: 'Cancelled', message: 'spec.cancel is set', stopLoop: 'Cancelled' };
  if (observed.rivalry.kind === 'Superseded')
    return {
      reason: 'Superseded',
      message: `AgentRun ${observed.rivalry.by} looks at a newer state of the merge request`,
      stopLoop: 'Superseded',
    };
  if (awaitsTurn(observed) || msToDeadline(observed, now) > 0) return undefined;
  const minutes = Math.round(timeoutMs / 6_000) / 10;
  const sandbox = conditionOf(run.status?.conditions, 'SandboxReady');
  if (run.status?.phase === 'Claiming' && sandbox !== undefined && sandbox.status !== 'True')
    return {
      reason: 'SandboxUnavailable',
      message: `No sandbox within the run's ${minutes} min: ${sandbox.message}`,
      stopLoop: 'Timeout',
    };
  const why = observed.lastFailure === undefined ? '' : `; the last step failed: ${observed.lastFailure}`;
  return { reason: 'Timeout', message: `Not finished within ${minutes} min${why}`, stopLoop: 'Timeout' };
}

/**
 * The time of the runs before it is not the run's own: its clock starts with its turn. Each of those has a limit of
 * its own, so the wait ends.
 */
function awaitsTurn(observed: Observed): boolean {
  return runAhead(observed) !== undefined || (hasWaited(observed.run) && observed.session.kind !== 'Open');
}

/** Milliseconds that the run may still work; 0 or less when its time is over. */
export function msToDeadline({ run, timeoutMs }: Observed, now: Date): number {
  const start = run.status?.startTime;
  return start === undefined ? timeoutMs : Date.parse(start) + timeoutMs - now.getTime();
}

/**
 * After the outcome: tell it, save it, give the sandbox back, end. Each step has its patience; a GitLab that is
 * down is waited for only when the session is saved and the sandbox is gone.
 */
function decideReport(
  { run, execution, publishesNote }: Observed,
  now: Date,
  outcome: NonNullable<NonNullable<AgentRun['status']>['outcome']>,
): Step {
  const conditions = run.status?.conditions;
  const age = now.getTime() - Date.parse(outcome.time);
  if (execution.kind === 'Running') return { kind: 'StopLoop', reason: 'Cancelled' };
  const note = conditionOf(conditions, 'NotePosted');
  const intended = run.status?.note !== undefined || run.status?.noteIntent !== undefined;
  const told = note?.reason === 'Posted' || note?.reason === 'Refused';
  const patienceMs =
    run.metadata.deletionTimestamp === undefined ? REPORT_PATIENCE_MS : DELETED_REPORT_PATIENCE_MS;
  const toTell = publishesNote && intended && !told && age < patienceMs;
  if (toTell && note?.reason !== 'Retrying') return { kind: 'UpdateNote' };
  const saved = conditionOf(conditions, 'SessionSaved');
  if (run.status?.checkpoint !== undefined && saved === undefined) return { kind: 'SaveSession' };
  if (saved?.status === 'Unknown' && age < SAVE_PATIENCE_MS) return { kind: 'SaveSession' };
  // Set before the claim, so that a claim whose record was lost is released too.
  const sandbox = conditionOf(conditions, 'SandboxReady');
  if (sandbox !== undefined && sandbox.reason !== 'Released' && sandbox.reason !== LINGERS)
    return { kind: !toTell && mayLinger(run, outcome.reason) ? 'LingerSandbox' : 'ReleaseSandbox' };
  return toTell ? { kind: 'UpdateNote' } : { kind: 'Finish' };
}

/** A reply goes on from what was told and saved; nobody replies to a run that failed or is to go. */
const mayLinger = ({ metadata, status }: AgentRun, reason: RunReason): boolean =>
  metadata.deletionTimestamp === undefined &&
  phaseOf(reason) === 'Succeeded' &&
  isTrue(status?.conditions, 'SessionSaved');

import { AGENT_RUNS } from '../../crds/agent-run.ts';
import { RUN_FINALIZER } from '../../crds/meta.ts';
import * as finalizers from '../../kube/finalizers.ts';
import { isTrue } from '../conditions.ts';
import type { Step } from './decide.ts';
import { StopReason } from './execution.ts';
import { forget } from './local.ts';
import { nextStatus, type StepContext, type StepResult, withOutcome } from './step.ts';
import { admit, beginAdmission } from './steps/admit.ts';
import { askApprovals, settleApprovals, tellApprovals } from './steps/approval.ts';
import { finish } from './steps/end.ts';
import { recordProgress, startLoop, takeResult } from './steps/loop.ts';
import { postPlaceholder, updateNote } from './steps/note.ts';
import { prepare } from './steps/prepare.ts';
import { announceProgress, showProgress } from './steps/progress.ts';
import { awaitTurn, beginTurn, openSession } from './steps/resume.ts';
import { claimSandbox, lingerSandbox, releaseSandbox } from './steps/sandbox.ts';
import { saveSession } from './steps/session.ts';

type ActingStep = Exclude<Step, { readonly kind: 'Done' | 'Wait' }>;

/** Does one step. Every step may be repeated: it looks for what an earlier try left before it makes anything. */
export async function act(step: ActingStep, context: StepContext): Promise<StepResult> {
  switch (step.kind) {
    case 'AddFinalizer':
      return addFinalizer(context);
    case 'RemoveFinalizer':
      return removeFinalizer(context);
    case 'DeleteRun':
      return deleteRun(context);
    case 'TakeHold':
      return takeHold(context);
    case 'Admit':
      return admit(context);
    case 'PostPlaceholder':
      return postPlaceholder(context);
    case 'Prepare':
      return prepare(context);
    case 'AwaitTurn':
      return awaitTurn(context, step.behind);
    case 'BeginTurn':
      return beginTurn(context);
    case 'OpenSession':
      return openSession(context);
    case 'ClaimSandbox':
      return claimSandbox(context);
    case 'StartLoop':
      return startLoop(context);
    case 'RecordProgress':
      return recordProgress(context);
    case 'AskApprovals':
      return askApprovals(context);
    case 'SettleApprovals':
      return settleApprovals(context);
    case 'TellApprovals':
      return tellApprovals(context);
    case 'AnnounceProgress':
      return announceProgress(context);
    case 'ShowProgress':
      return showProgress(context);
    case 'StopLoop':
      return stopLoop(context, step.reason);
    case 'TakeResult':
      return takeResult(context);
    case 'SetOutcome':
      context.deps.events.record(context.run, 'Warning', step.reason, step.message);
      return withOutcome(context, step.reason, step.message);
    case 'UpdateNote':
      return updateNote(context);
    case 'SaveSession':
      return saveSession(context);
    case 'LingerSandbox':
      return lingerSandbox(context);
    case 'ReleaseSandbox':
      return releaseSandbox(context);
    case 'Finish':
      return finish(context);
    default:
      return step satisfies never;
  }
}

/** Before anything is made for the run, so that its deletion waits for the sandbox to go. */
async function addFinalizer({ deps, run }: StepContext): Promise<StepResult> {
  return { run: await finalizers.addFinalizer(deps.kube, AGENT_RUNS, run, RUN_FINALIZER) };
}

async function removeFinalizer({ deps, run }: StepContext): Promise<StepResult> {
  const after = await finalizers.removeFinalizer(deps.kube, AGENT_RUNS, run, RUN_FINALIZER);
  return after === undefined || after.metadata.deletionTimestamp !== undefined
    ? { gone: true }
    : { run: after };
}

async function deleteRun({ deps, run }: StepContext): Promise<StepResult> {
  const { name = '', namespace = '', uid, resourceVersion } = run.metadata;
  await deps.kube.delete(
    AGENT_RUNS,
    { name, namespace },
    { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) },
  );
  return { gone: true };
}

/** From this write on every other holder's writes are refused: they carry an older resourceVersion. */
function takeHold(context: StepContext): StepResult {
  const { deps, run, local } = context;
  const uid = run.metadata.uid ?? '';
  // Handles of an earlier hold speak for it, not for this one.
  forget(local, uid);
  if (!isTrue(run.status?.conditions, 'Admitted')) beginAdmission(context);
  const now = deps.clock.now().toISOString();
  const before = run.status?.holder;
  if (before !== undefined && before.replica !== deps.holderName)
    deps.events.record(
      run,
      'Normal',
      'TakenOver',
      `${deps.holderName} goes on where ${before.replica} stopped`,
    );
  return {
    status: nextStatus(context, {
      phase: run.status?.phase ?? 'Pending',
      holder: { replica: deps.holderName, epoch: (before?.epoch ?? 0) + 1 },
      startTime: run.status?.startTime ?? now,
      mergeRequest: `${run.spec.mergeRequest.project}!${run.spec.mergeRequest.iid}`,
    }),
  };
}

async function stopLoop(
  context: StepContext,
  kind: StopReason['kind'] & keyof typeof STOP_MESSAGES,
): Promise<StepResult> {
  const { local, run } = context;
  const uid = run.metadata.uid ?? '';
  await local.executions.get(uid)?.stop(new StopReason(kind, STOP_MESSAGES[kind]));
  if (kind === 'Fenced') forget(local, uid);
  return {};
}

const STOP_MESSAGES = {
  Cancelled: 'The run was cancelled',
  Superseded: 'A newer run of the workflow looks at a newer state of the merge request',
  Timeout: 'The run reached its time limit',
  Fenced: 'Another replica holds the run now',
} as const;

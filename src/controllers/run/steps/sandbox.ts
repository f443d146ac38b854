import { labelValue } from '../../../crds/labels.ts';
import { type Condition, LABELS, MANAGED_BY } from '../../../crds/meta.ts';
import type { Sandbox, SandboxRequest } from '../../../sandbox/port.ts';
import { conditionOf } from '../../conditions.ts';
import { LINGERS } from '../decide.ts';
import { startingSandbox } from '../starting-sandbox.ts';
import type { StepContext, StepResult } from '../step.ts';
import { nextStatus, sessionIdOf, withOutcome } from '../step.ts';

/** How soon a run that waits for a sandbox asks again; a pool's pod is ready within about a second. */
const CLAIM_RETRY_MS = 250;
/** Reason of `SandboxReady` while none is free, and of the run when it ends for that. */
const UNAVAILABLE = 'SandboxUnavailable';

/** The run's sandbox: the one that carries its uid already, else a newly claimed one. */
export async function claimSandbox(context: StepContext): Promise<StepResult> {
  const { deps, run, local, signal } = context;
  const { pool } = context.effective;
  if (pool === undefined)
    return withOutcome(
      context,
      'InvalidSpec',
      `AgentWorkflow ${run.spec.workflowRef.name} names no sandbox pool any more`,
    );
  const claimed = await deps.sandboxes.claim(requestOf(context, pool), signal);
  if (claimed.kind === 'Unavailable') {
    deps.events.record(run, 'Warning', 'SandboxUnavailable', claimed.message);
    return withOutcome(
      context,
      'SandboxUnavailable',
      claimed.message,
      {},
      {
        type: 'SandboxReady',
        status: 'False',
        reason: UNAVAILABLE,
        message: claimed.message,
      },
    );
  }
  if (claimed.kind === 'Waiting') return waiting(context, claimed.message);
  // Not waited for: the first model call takes longer than the start of a warm pod.
  const uid = run.metadata.uid ?? '';
  local.sandboxes.set(uid, startingSandbox(claimed.sandbox, signal));
  const { kind, name, namespace } = claimed.sandbox.ref;
  const where = `${kind} ${namespace ?? ''}/${name}`;
  if (claimed.reclaimed) {
    local.reclaimed.add(uid);
    deps.events.record(run, 'Normal', 'SandboxReclaimed', `${where} lingered for this session`);
  } else deps.events.record(run, 'Normal', 'SandboxClaimed', where);
  return {
    status: nextStatus(
      context,
      { sandbox: { kind, name, ...(namespace === undefined ? {} : { namespace }) } },
      {
        type: 'SandboxReady',
        status: 'True',
        reason: claimed.reclaimed ? 'Reclaimed' : 'Claimed',
        message: `${kind} ${name}`,
      },
    ),
  };
}

/** The sandbox that the run has, also after a restart of this process; undefined when it has none any more. */
export async function ownSandbox({ deps, run, local }: StepContext): Promise<Sandbox | undefined> {
  const uid = run.metadata.uid ?? '';
  const held = local.sandboxes.get(uid);
  const namespace = run.status?.sandbox?.namespace;
  if (held !== undefined || namespace === undefined) return held;
  return deps.sandboxes.find(uid, namespace);
}

/** Leaves the sandbox to the session's next run, where its pool keeps some; else it is released. */
export async function lingerSandbox(context: StepContext): Promise<StepResult> {
  const { deps, run, local } = context;
  const { uid = '', namespace: runNamespace = '' } = run.metadata;
  const namespace = sandboxNamespace(context);
  if (namespace === undefined) return releaseSandbox(context);
  const kept = await deps.sandboxes.linger({
    ...{ runUid: uid, runNamespace, namespace },
    sessionId: sessionIdOf(run),
  });
  if (kept.kind === 'NotKept') return releaseSandbox(context);
  // What another holder may have claimed beside it.
  if (!(await deps.sandboxes.release(uid, namespace))) return { afterMs: CLAIM_RETRY_MS };
  local.sandboxes.delete(uid);
  const { ref, until } = kept;
  const message = `${ref.kind} ${ref.name} is kept for a reply until ${until.toISOString()}`;
  deps.events.record(run, 'Normal', 'SandboxLingers', message);
  return {
    status: nextStatus(context, {}, { type: 'SandboxReady', status: 'False', reason: LINGERS, message }),
  };
}

const sandboxNamespace = ({ run, effective }: StepContext): string | undefined =>
  run.status?.sandbox?.namespace ?? effective.pool?.namespace;

/** Deletes every sandbox of this run; the step repeats until the API server shows none. */
export async function releaseSandbox(context: StepContext): Promise<StepResult> {
  const { deps, run, local } = context;
  const uid = run.metadata.uid ?? '';
  const namespace = sandboxNamespace(context);
  local.sandboxes.delete(uid);
  if (namespace !== undefined && !(await deps.sandboxes.release(uid, namespace)))
    return { afterMs: CLAIM_RETRY_MS };
  deps.events.record(
    run,
    'Normal',
    'SandboxReleased',
    `Sandboxes of this run in ${namespace ?? 'no namespace'} are deleted`,
  );
  return {
    status: nextStatus(
      context,
      {},
      {
        type: 'SandboxReady',
        status: 'False',
        reason: 'Released',
        message: 'The sandbox was deleted after the run',
      },
    ),
  };
}

export function requestOf(
  context: StepContext,
  pool: { readonly name: string; readonly namespace: string },
): SandboxRequest {
  const { run, deps, local } = context;
  const savedBy = local.savedBy.get(run.metadata.uid ?? '');
  const waiting = conditionOf(run.status?.conditions, 'SandboxReady');
  const workflowName = run.spec.workflowRef.name;
  // Longer than the run itself: reporting and saving still need the sandbox.
  const lifetimeMs = context.effective.timeoutMs + 5 * 60_000;
  return {
    runUid: run.metadata.uid ?? '',
    runName: run.metadata.name ?? '',
    runNamespace: run.metadata.namespace ?? '',
    workflow: workflowName,
    sessionId: sessionIdOf(run),
    ...(savedBy === undefined ? {} : { savedBy }),
    ...(isWaiting(waiting) ? { waitingSince: new Date(waiting.lastTransitionTime) } : {}),
    pool,
    epoch: run.status?.holder?.epoch ?? 0,
    labels: {
      [LABELS.managedBy]: MANAGED_BY,
      [LABELS.workflow]: labelValue(workflowName),
      ...(run.status?.projectId === undefined ? {} : { [LABELS.projectId]: String(run.status.projectId) }),
    },
    reapBy: new Date(deps.clock.now().getTime() + lifetimeMs),
  };
}

/** While a run waits, its condition has the reason that the run ends with when none comes. */
const isWaiting = (condition: Condition | undefined): condition is Condition =>
  condition?.status === 'False' && condition.reason === UNAVAILABLE;

/** Said once per change of reason, so that a long wait is one condition and one Event, not hundreds. */
function waiting(context: StepContext, message: string): StepResult {
  const before = conditionOf(context.run.status?.conditions, 'SandboxReady');
  if (isWaiting(before) && before.message === message) return { afterMs: CLAIM_RETRY_MS };
  context.deps.events.record(context.run, 'Normal', 'WaitingForSandbox', message);
  return {
    status: nextStatus(context, {}, { type: 'SandboxReady', status: 'False', reason: UNAVAILABLE, message }),
    afterMs: CLAIM_RETRY_MS,
  };
}

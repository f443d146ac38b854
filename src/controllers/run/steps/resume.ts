import type { EarlierSession } from '../../../agent/earlier-session.ts';
import { SessionFormatError } from '../../../agent/session.ts';
import type { AgentRun } from '../../../crds/agent-run.ts';
import { AGENT_SESSIONS } from '../../../crds/agent-session.ts';
import { conditionOf } from '../../conditions.ts';
import { AWAITS_TURN } from '../decide.ts';
import { keepEarlier } from '../earlier.ts';
import { nextStatus, type StepContext, type StepResult, sessionIdOf, withOutcome } from '../step.ts';

/** The end of the run before wakes this one; this is for when that is missed. */
const TURN_RETRY_MS = 5_000;

/** Reason of `SessionSaved` when there is no conversation to go on with. */
export const EXPIRED = 'Expired';

/** Says for whom the run waits; once for each. */
export function awaitTurn(context: StepContext, behind: string): StepResult {
  const { run, deps } = context;
  const which = run.spec.sessionRef === undefined ? 'this workflow on the merge request' : 'one session';
  const message = `Waits for AgentRun ${behind}: runs of ${which} take turns`;
  const before = conditionOf(run.status?.conditions, 'Succeeded');
  if (before?.reason === AWAITS_TURN && before.message === message) return { afterMs: TURN_RETRY_MS };
  deps.events.record(run, 'Normal', 'AwaitingTurn', message);
  return {
    status: nextStatus(context, {}, { type: 'Succeeded', status: 'Unknown', reason: AWAITS_TURN, message }),
    afterMs: TURN_RETRY_MS,
  };
}

/** Finds the conversation that the run goes on with and keeps it for the run. It is the run's turn. */
export async function openSession(context: StepContext): Promise<StepResult> {
  const { deps, run, local, signal } = context;
  const { uid = '', namespace = '' } = run.metadata;
  const name = sessionIdOf(run);
  const session = await deps.kube.get(AGENT_SESSIONS, { namespace, name }, { signal });
  if (session !== undefined && isOther(run, session.spec))
    return withOutcome(context, 'InvalidSpec', otherMessage(name, session.spec));
  const expiry = session?.status?.expiresAt;
  // Its AgentSession is made when this run saves it.
  const adopted = session === undefined && deps.adoptsSessions && run.spec.trigger.kind === 'Reply';
  if ((session === undefined && !adopted) || session?.metadata.deletionTimestamp !== undefined)
    return expired(context);
  if (expiry !== undefined && Date.parse(expiry) <= deps.clock.now().getTime()) return expired(context);

  let earlier: EarlierSession | undefined;
  try {
    earlier = await keepEarlier(deps.store, uid, name, signal);
  } catch (error) {
    if (error instanceof SessionFormatError) return withOutcome(context, 'InvalidSpec', error.message);
    throw error;
  }
  if (earlier === undefined) return expired(context);
  const { envelope } = earlier;
  if (envelope !== undefined) {
    const { workflow, project, iid } = envelope;
    const saved = { workflowRef: { name: workflow }, mergeRequest: { project, iid } };
    if (isOther(run, saved)) return withOutcome(context, 'InvalidSpec', otherMessage(name, saved));
  }
  local.openSessions.add(uid);
  if (envelope?.run !== undefined) local.savedBy.set(uid, envelope.run);
  deps.events.record(run, 'Normal', 'SessionOpened', `Going on with AgentSession ${name}`);
  return conditionOf(run.status?.conditions, 'Succeeded')?.reason === AWAITS_TURN
    ? { status: begun(context, 'Resuming', `Goes on with AgentSession ${name}`) }
    : {};
}

/**
 * Before anything is posted: what makes it impossible to go on with the session that the run names. A session
 * that is not there yet may be in the making, by a run that this one will wait for.
 */
export async function refusedSession({ deps, run, signal }: StepContext): Promise<string | undefined> {
  if (run.spec.sessionRef === undefined) return undefined;
  const { name } = run.spec.sessionRef;
  const { namespace = '' } = run.metadata;
  if ((run.spec.message ?? '').trim() === '')
    return `spec.message is missing: a run that goes on with AgentSession ${name} needs what it is to answer`;
  const session = await deps.kube.get(AGENT_SESSIONS, { namespace, name }, { signal });
  const place =
    session?.spec ?? deps.sessionRuns(namespace, name).find(({ metadata }) => metadata.uid === name)?.spec;
  return place !== undefined && isOther(run, place) ? otherMessage(name, place) : undefined;
}

type Place = Pick<AgentRun['spec'], 'workflowRef' | 'mergeRequest'>;

/** Nobody gets at the words of another merge request, or of a workflow with other tools, by naming its session. */
function isOther({ spec }: AgentRun, { workflowRef, mergeRequest }: Place): boolean {
  return (
    spec.workflowRef.name !== workflowRef.name ||
    spec.mergeRequest.project !== mergeRequest.project ||
    spec.mergeRequest.iid !== mergeRequest.iid
  );
}

const otherMessage = (name: string, { workflowRef, mergeRequest }: Place): string =>
  `AgentSession ${name} belongs to workflow ${workflowRef.name} on ${mergeRequest.project}!${mergeRequest.iid}; name a session of this workflow and merge request in spec.sessionRef, or leave it out`;

/** No cold start: without what was said before, a reply cannot be answered, and an analysis was not asked for. */
function expired(context: StepContext): StepResult {
  const { deps, run } = context;
  const message = `AgentSession ${sessionIdOf(run)} has expired or was deleted; create an AgentRun without spec.sessionRef for a new analysis`;
  deps.events.record(run, 'Warning', 'SessionExpired', message);
  return withOutcome(
    context,
    'InvalidSpec',
    message,
    {},
    { type: 'SessionSaved', status: 'False', reason: EXPIRED, message },
  );
}

/** The runs before it are over, and it goes on with no session. */
export const beginTurn = (context: StepContext): StepResult => ({
  status: begun(context, 'Starting', 'Its turn has come'),
});

/** The run's time is counted from its turn on. */
const begun = (context: StepContext, reason: 'Starting' | 'Resuming', message: string) =>
  nextStatus(
    context,
    { startTime: context.deps.clock.now().toISOString() },
    { type: 'Succeeded', status: 'Unknown', reason, message },
  );

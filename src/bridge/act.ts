import { AGENT_RUNS, type AgentRun } from '../crds/agent-run.ts';
import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import { approvalAnnotation } from '../crds/approval.ts';
import { backoffMs, type Clock, type Random, sleep } from '../kube/clock.ts';
import { isKubeError } from '../kube/errors.ts';
import type { Exclusively } from '../kube/exclusive.ts';
import type { Logger } from '../kube/log.ts';
import type { EventRecorder, KubeClient } from '../kube/port.ts';
import type { Answer, CreateRun, Decision, ResolveThreads, Skip } from './decide/decision.ts';
import { SKIP_REASONS } from './decide/reasons.ts';
import type { BridgeMetrics } from './metrics.ts';
import { gitlabFailure } from './observe.ts';
import type { BridgeGitLab, QueueMessage } from './port.ts';
import { buildRun } from './run.ts';

export interface ActDependencies {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  readonly gitlab: BridgeGitLab;
  readonly metrics: BridgeMetrics;
  readonly logger: Logger;
  readonly exclusively: Exclusively;
  readonly clock: Clock;
  readonly random: Random;
}

/** Makes one decision durable. Safe to repeat. Throws KubeError, GitLabAwayError. */
export async function act(
  dependencies: ActDependencies,
  decision: Decision<AgentWorkflow>,
  message: QueueMessage,
  signal: AbortSignal,
): Promise<void> {
  switch (decision.kind) {
    case 'CreateRun':
      return createRun(dependencies, decision, message, signal);
    case 'Skip':
      return recordSkip(dependencies, decision, message);
    case 'Answer':
      return answer(dependencies, decision, message, signal);
    case 'ResolveThreads':
      return resolveThreads(dependencies, decision, message, signal);
    default:
      return decision satisfies never;
  }
}

/** Enough for a leader change of etcd or a restart of one API server behind a load balancer. */
const WRITE_TRIES = 3;

async function createRun(
  dependencies: ActDependencies,
  decision: CreateRun<AgentWorkflow>,
  message: QueueMessage,
  signal: AbortSignal,
): Promise<void> {
  const { kube, events, metrics, logger } = dependencies;
  const run = buildRun(decision);
  const fields = { messageId: message.id, run: `${run.metadata.namespace}/${run.metadata.name}` };
  try {
    const created = await persistently(dependencies, signal, () => kube.create(AGENT_RUNS, run, { signal }));
    metrics.run('created');
    logger.info({ ...fields, cause: decision.cause }, 'run created');
    events.record(created, 'Normal', 'Created', decision.message);
  } catch (error) {
    if (!isKubeError(error, 'AlreadyExists')) throw error;
    // The name is the cause: another delivery, or this one before a restart, made it already.
    metrics.run('existing');
    logger.info({ ...fields, receiveCount: message.receiveCount }, 'run exists already');
  }
}

async function persistently<T>(
  { clock, random }: ActDependencies,
  signal: AbortSignal,
  write: () => Promise<T>,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await write();
    } catch (error) {
      if (tries >= WRITE_TRIES || !isKubeError(error) || !error.retryable || signal.aborted) throw error;
      await sleep(clock, error.retryAfterMs ?? backoffMs(tries - 1, 200, 2_000, random), signal);
      signal.throwIfAborted();
    }
  }
}

async function recordSkip(
  { events, metrics, logger }: ActDependencies,
  { workflow, reason, message: text }: Skip<AgentWorkflow>,
  message: QueueMessage,
): Promise<void> {
  metrics.skip(reason);
  logger.info({ messageId: message.id, workflow: workflow?.metadata.name, reason }, text);
  // Most events of a project start nothing; an Event for each would push the telling ones out of `kubectl describe`.
  const { told } = SKIP_REASONS[reason];
  if (workflow === undefined || told === 'Log') return;
  events.record(workflow, told === 'Warning' ? 'Warning' : 'Normal', reason, text);
}

/** What was asked for first, then the words that say so. */
async function answer(
  dependencies: ActDependencies,
  decision: Answer<AgentWorkflow>,
  message: QueueMessage,
  signal: AbortSignal,
): Promise<void> {
  const { gitlab, metrics, logger } = dependencies;
  await Promise.all((decision.cancel ?? []).map((run) => cancelRun(dependencies, run, signal)));
  if (decision.approval !== undefined) await answerQuestion(dependencies, decision.approval, signal);
  const { project, iid, discussionId, noteId } = decision.to;
  const fields = { messageId: message.id, project, iid, noteId, answer: decision.what };
  // Two replicas that are handed one note at the same time would both look, see no answer, and post.
  const told = await dependencies.exclusively(`answer ${project} ${iid} ${noteId}`, signal, () =>
    gitlab.threads
      .answer({ project, iid }, { discussionId, noteId }, decision.text, signal)
      .catch((cause: unknown) => {
        throw gitlabFailure(cause, signal, `${project}!${iid}`);
      }),
  );
  if (told.kind === 'Refused') {
    metrics.answer(decision.what, 'refused');
    logger.warn(
      { ...fields, status: told.status, problem: told.message },
      "GitLab refuses the answer: the operator's own token needs the scope api and may write in every project",
    );
  } else {
    metrics.answer(decision.what, told.value === 'Posted' ? 'posted' : 'existing');
    logger.info(fields, told.value === 'Posted' ? 'answered' : 'answered already');
  }
  if (decision.skip !== undefined) await recordSkip(dependencies, decision.skip, message);
}

async function cancelRun(dependencies: ActDependencies, run: AgentRun, signal: AbortSignal): Promise<void> {
  await patchRun(dependencies, run, { spec: { cancel: true } }, signal);
}

/** The run's controller takes it from there; an answer that is there already is replaced while nobody has taken it. */
async function answerQuestion(
  dependencies: ActDependencies,
  { run, id, text }: NonNullable<Answer['approval']>,
  signal: AbortSignal,
): Promise<void> {
  const { uid } = run.metadata;
  const metadata = { ...(uid !== undefined && { uid }), annotations: { [approvalAnnotation(id)]: text } };
  await patchRun(dependencies, run, { metadata }, signal);
}

async function patchRun(
  dependencies: ActDependencies,
  { metadata }: AgentRun,
  body: unknown,
  signal: AbortSignal,
): Promise<void> {
  const { name = '', namespace } = metadata;
  const ref = { name, ...(namespace === undefined ? {} : { namespace }) };
  try {
    await persistently(dependencies, signal, () =>
      dependencies.kube.patch(AGENT_RUNS, ref, { type: 'merge', body }, { signal }),
    );
  } catch (error) {
    // Deleted meanwhile, which ends it as well.
    if (!isKubeError(error, 'NotFound')) throw error;
  }
}

async function resolveThreads(
  { gitlab, metrics, logger, events }: ActDependencies,
  { workflow, project, iid, exceptSha, message: why }: ResolveThreads<AgentWorkflow>,
  message: QueueMessage,
  signal: AbortSignal,
): Promise<void> {
  const name = workflow.metadata.name ?? '';
  const fields = { messageId: message.id, workflow: name, project, iid };
  const notes = await gitlab.notes(workflow, project);
  const done =
    notes.kind === 'Ok'
      ? await notes.value
          .resolveThreads(
            { project, iid },
            { workflow: name, ...(exceptSha === undefined ? {} : { exceptSha }) },
          )
          .catch((cause: unknown) => {
            throw gitlabFailure(cause, signal, `${project}!${iid}`);
          })
      : notes;
  if (done.kind === 'Ok') {
    metrics.resolved(done.value);
    if (done.value > 0) logger.info({ ...fields, threads: done.value }, `threads resolved: ${why}`);
    return;
  }
  const text = `threads of ${project}!${iid} could not be resolved: ${done.message}`;
  logger.warn(fields, text);
  events.record(workflow, 'Warning', 'ThreadsNotResolved', text);
}

import { AGENT_RUNS } from '../crds/agent-run.ts';
import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import { backoffMs, type Clock, type Random, sleep } from '../kube/clock.ts';
import { isKubeError } from '../kube/errors.ts';
import type { Logger } from '../kube/log.ts';
import type { EventRecorder, KubeClient } from '../kube/port.ts';
import type { CreateRun, Decision, Skip, SkipReason } from './decide/decision.ts';
import { decidePipeline } from './decide/pipeline.ts';
import { parseEvent } from './events.ts';
import type { BridgeMetrics } from './metrics.ts';
import type { Handled, QueueMessage } from './port.ts';
import { decodeEnvelope } from './queue/envelope.ts';
import { buildRun } from './run.ts';

export interface HandleDependencies {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  /** All workflows, or undefined while they are not known yet: deciding without them would drop events. */
  readonly workflows: () => readonly AgentWorkflow[] | undefined;
  readonly metrics: BridgeMetrics;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * Decodes one message, decides, and makes the outcome durable. Safe to repeat. Throws when an outcome could not
 * be made durable (KubeError of the first one; the other workflows were still served).
 */
export async function handleMessage(
  dependencies: HandleDependencies,
  message: QueueMessage,
  signal: AbortSignal,
): Promise<Handled> {
  const decoded = await decodeEnvelope(message);
  if (!decoded.ok) return { kind: 'Undecodable', message: decoded.message };
  const parsed = parseEvent(decoded.event);
  if (!parsed.ok) return { kind: 'Undecodable', message: parsed.message };
  const workflows = dependencies.workflows();
  if (workflows === undefined)
    throw new Error('AgentWorkflows are not read yet; the message is left for later');
  const decisions: readonly Decision<AgentWorkflow>[] =
    parsed.event.kind === 'Pipeline'
      ? decidePipeline(parsed.event, workflows)
      : [{ kind: 'Skip', reason: 'EventNotHandled', message: `${parsed.event.what} events start nothing` }];

  const outcomes = await Promise.allSettled(
    decisions.map((decision) =>
      decision.kind === 'CreateRun'
        ? createRun(dependencies, decision, message, signal)
        : recordSkip(dependencies, decision, message),
    ),
  );
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed) throw failed.reason;
  return { kind: 'Durable' };
}

/** Enough for a leader change of etcd or a restart of one API server behind a load balancer. */
const CREATE_TRIES = 3;

async function createRun(
  { kube, events, metrics, logger, clock, random }: HandleDependencies,
  decision: CreateRun<AgentWorkflow>,
  message: QueueMessage,
  signal: AbortSignal,
): Promise<void> {
  const run = buildRun(decision);
  const fields = { messageId: message.id, run: `${run.metadata.namespace}/${run.metadata.name}` };
  for (let tries = 1; ; tries++) {
    try {
      const created = await kube.create(AGENT_RUNS, run, { signal });
      metrics.run('created');
      logger.info({ ...fields, cause: decision.cause }, 'run created');
      events.record(created, 'Normal', 'Created', decision.message);
      return;
    } catch (error) {
      if (isKubeError(error, 'AlreadyExists')) {
        // The name is the cause: another delivery, or this one before a restart, made it already.
        metrics.run('existing');
        logger.info({ ...fields, receiveCount: message.receiveCount }, 'run exists already');
        return;
      }
      if (tries >= CREATE_TRIES || !isKubeError(error) || !error.retryable || signal.aborted) throw error;
      await sleep(clock, error.retryAfterMs ?? backoffMs(tries - 1, 200, 2_000, random), signal);
      signal.throwIfAborted();
    }
  }
}

/** Most events of a project end this way; an Event for each would push the telling ones out of `kubectl describe`. */
const NO_NEWS: ReadonlySet<SkipReason> = new Set(['PipelineNotFinished', 'NotTriggered']);

async function recordSkip(
  { events, metrics, logger }: HandleDependencies,
  { workflow, reason, message: text }: Skip<AgentWorkflow>,
  message: QueueMessage,
): Promise<void> {
  metrics.skip(reason);
  logger.info({ messageId: message.id, workflow: workflow?.metadata.name, reason }, text);
  if (workflow === undefined || NO_NEWS.has(reason)) return;
  events.record(workflow, reason === 'InvalidRule' ? 'Warning' : 'Normal', reason, text);
}

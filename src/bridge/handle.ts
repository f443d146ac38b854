import type { AgentRun } from '../crds/agent-run.ts';
import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import { type ActDependencies, act } from './act.ts';
import { decide } from './decide/decide.ts';
import type { Decision, Facts } from './decide/decision.ts';
import { type GitLabEvent, type OtherEvent, parseEvent } from './events/parse.ts';
import { Observer } from './observe.ts';
import type { BridgeGitLab, Handled, QueueMessage } from './port.ts';
import { decodeEnvelope } from './queue/envelope.ts';

export interface HandleDependencies extends ActDependencies {
  /** All workflows, or undefined while they are not known yet: deciding without them would drop events. */
  readonly workflows: () => readonly AgentWorkflow[] | undefined;
  /** Runs on a merge request that this process knows of. */
  readonly runsOn: (project: string, iid: number) => readonly AgentRun[];
  readonly gitlab: BridgeGitLab;
  /** Word that begins a command. */
  readonly commandPrefix: string;
}

/**
 * Decodes one message, decides, and makes the outcome durable. Safe to repeat. Throws when an outcome could not
 * be made durable (the error of the first one; the other workflows were still served), and GitLabAwayError.
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
  const decisions = await decisionsOn(dependencies, parsed.event, signal);
  const outcomes = await Promise.allSettled(
    decisions.map((decision) => act(dependencies, decision, message, signal)),
  );
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed) throw failed.reason;
  return { kind: 'Durable' };
}

/** More rounds of questions than any decision has; one that never settles stops here. */
const MAX_ROUNDS = 5;

/** Decides, asks what the decision wants to know, and decides again. */
async function decisionsOn(
  { workflows: known, runsOn, gitlab, commandPrefix }: HandleDependencies,
  event: GitLabEvent | OtherEvent,
  signal: AbortSignal,
): Promise<readonly Decision<AgentWorkflow>[]> {
  const workflows = known();
  if (workflows === undefined)
    throw new Error('AgentWorkflows are not read yet; the message is left for later');
  const at = {
    project: event.kind === 'Other' ? '' : event.project.path,
    iid: event.kind === 'Other' ? 0 : (event.mergeRequest?.iid ?? 0),
  };
  const observer = new Observer(gitlab, at, signal);
  let facts: Facts = {};
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const runs = runsOn(at.project, at.iid);
    const verdict = decide(event, { workflows, runs, commandPrefix, facts });
    if (verdict.kind === 'Decided') return verdict.decisions;
    facts = await observer.ask(facts, verdict.questions);
  }
  throw new Error(`${event.kind} event of ${at.project}!${at.iid}: no decision after ${MAX_ROUNDS} rounds`);
}

import { Counter, type Registry } from 'prom-client';
import type { Answer } from './decide/decision.ts';
import type { SkipReason } from './decide/reasons.ts';

export type MessageOutcome =
  /** Durable outcome, deleted. */
  | 'handled'
  /** Cannot be read: left to the dead-letter queue. */
  | 'undecodable'
  /** Could be read, outcome not durable: left for another delivery. */
  | 'failed'
  /** Given back unread at shutdown. */
  | 'returned';

export interface BridgeMetrics {
  message(outcome: MessageOutcome): void;
  skip(reason: SkipReason): void;
  run(outcome: 'created' | 'existing'): void;
  answer(what: Answer['what'], outcome: 'posted' | 'existing' | 'refused'): void;
  /** So many threads were resolved. */
  resolved(threads: number): void;
}

export function bridgeMetrics(registry: Registry): BridgeMetrics {
  const registers = [registry];
  const messages = new Counter({
    name: 'hummingbird_bridge_messages_total',
    help: 'Queue messages by what became of them: handled, undecodable, failed, returned.',
    labelNames: ['outcome'],
    registers,
  });
  const skips = new Counter({
    name: 'hummingbird_bridge_skips_total',
    help: 'Events that started no run, by reason.',
    labelNames: ['reason'],
    registers,
  });
  const runs = new Counter({
    name: 'hummingbird_bridge_runs_total',
    help: 'Runs asked for by events: created, or existing already because the event came again.',
    labelNames: ['outcome'],
    registers,
  });
  const answers = new Counter({
    name: 'hummingbird_bridge_answers_total',
    help: 'Answers to notes by what they say, and whether they were posted, existed already, or GitLab refused them.',
    labelNames: ['answer', 'outcome'],
    registers,
  });
  const resolved = new Counter({
    name: 'hummingbird_bridge_threads_resolved_total',
    help: 'Threads of our bots that were resolved after a success or a push.',
    registers,
  });
  return {
    message: (outcome) => messages.inc({ outcome }),
    skip: (reason) => skips.inc({ reason }),
    run: (outcome) => runs.inc({ outcome }),
    answer: (answer, outcome) => answers.inc({ answer, outcome }),
    resolved: (threads) => resolved.inc(threads),
  };
}

import { Counter, type Registry } from 'prom-client';
import type { SkipReason } from './decide/decision.ts';

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
  return {
    message: (outcome) => messages.inc({ outcome }),
    skip: (reason) => skips.inc({ reason }),
    run: (outcome) => runs.inc({ outcome }),
  };
}

import { Counter, type Registry } from 'prom-client';
import type { EventKind } from './route.ts';

export type RouteOutcome =
  | 'received'
  | 'forwarded'
  /** Cannot be read: left to the dead-letter queue. */
  | 'unroutable'
  /** Too large for the FIFO queue, packed or not: left to the dead-letter queue. */
  | 'tooLarge'
  /** The FIFO queue takes it in no case: left to the dead-letter queue. */
  | 'refused'
  /** One try to send it failed; it stays in hand for the next. */
  | 'failed'
  /** Given back at shutdown. */
  | 'returned';

export interface QueueMetrics {
  routed(kind: EventKind, outcome: RouteOutcome): void;
  extension(outcome: 'extended' | 'failed'): void;
}

export function queueMetrics(registry: Registry): QueueMetrics {
  const registers = [registry];
  const routed = new Counter({
    name: 'hummingbird_router_messages_total',
    help: 'Messages of the standard queue by kind of event and what became of them: received, forwarded, unroutable, tooLarge, refused, failed, returned.',
    labelNames: ['kind', 'outcome'],
    registers,
  });
  const extensions = new Counter({
    name: 'hummingbird_queue_extensions_total',
    help: 'Times that a message in hand was hidden for longer: extended, failed.',
    labelNames: ['outcome'],
    registers,
  });
  return {
    routed: (kind, outcome) => routed.inc({ kind, outcome }),
    extension: (outcome) => extensions.inc({ outcome }),
  };
}

import { backoffMs, type Clock, type Random, sleep } from '../../kube/clock.ts';
import { errorFields, type Logger } from '../../kube/log.ts';
import type { Inbox, Outbox, OutgoingMessage, QueueMessage, SendOutcome } from '../port.ts';
import type { QueueHealth } from './health.ts';
import { keepHidden } from './hide.ts';
import type { QueueMetrics } from './metrics.ts';
import { type EventKind, firstOfEachGroup, packed, routeOf } from './route.ts';

export interface RouterDependencies {
  /** The standard queue that SNS feeds. */
  readonly ingress: Inbox;
  /** The FIFO queue that the workers read. */
  readonly fifo: Outbox;
  readonly metrics: QueueMetrics;
  readonly health: QueueHealth;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: Random;
  /** Longest wait of one receive, default 20 s, which is SQS's longest. */
  readonly waitSeconds?: number;
  /** How long a message is hidden from others at a time, default 30 s; extended while it is in hand. */
  readonly visibilitySeconds?: number;
  /** What is in hand at shutdown may take so long; then it is handed back. Default 10 s. */
  readonly graceMs?: number;
}

/** A message that is not sent yet. */
interface Waiting {
  readonly message: QueueMessage;
  readonly what: EventKind;
  readonly outgoing: OutgoingMessage;
  readonly reveal: () => Promise<void>;
}

/**
 * Moves messages from the standard queue to the FIFO queue until `signal` is aborted. A message is deleted after it
 * was sent. One that cannot be sent because the FIFO queue is away stays in hand, hidden, and nothing more is received:
 * an outage costs each message one receive. One that can never be sent is left to the dead-letter queue and holds up no
 * other. Never rejects.
 */
export async function runRouter(dependencies: RouterDependencies, signal: AbortSignal): Promise<void> {
  const { ingress, fifo, metrics, health, logger, clock, random } = dependencies;
  const { waitSeconds = 20, visibilitySeconds = 30, graceMs = 10_000 } = dependencies;
  const hardStop = new AbortController();
  let cancelHardStop = () => {};
  const onStop = () => {
    cancelHardStop = clock.after(graceMs, () =>
      hardStop.abort(new Error(`still in hand ${graceMs} ms after the stop`)),
    );
  };
  signal.addEventListener('abort', onStop, { once: true });
  /** Beside the next receive: what is deleted late is at worst sent twice, and there once. */
  const deletions = new Set<Promise<void>>();
  let failures = 0;

  while (!signal.aborted) {
    try {
      const messages = await ingress.receive({ max: 10, waitSeconds, visibilitySeconds, signal });
      failures = 0;
      health.reached();
      const waiting = await open(messages);
      // However it ends: a message that stays hidden for ever would never reach the dead-letter queue either.
      await forward(waiting).finally(() => Promise.all(waiting.map(({ reveal }) => reveal())));
    } catch (error) {
      if (signal.aborted) break;
      await failed('nothing received from the queue; trying again', errorFields(error).error);
    }
  }
  logger.info({ deletions: deletions.size }, 'the router stops: nothing more is received');
  await Promise.all(deletions);
  cancelHardStop();

  async function open(messages: readonly QueueMessage[]): Promise<readonly Waiting[]> {
    const waiting: Waiting[] = [];
    for (const message of messages) {
      const route = await routeOf(message);
      metrics.routed(route.what, 'received');
      if (route.kind === 'Unroutable') leave(message, route.what, 'unroutable', route.message);
      else waiting.push({ message, what: route.what, outgoing: route.outgoing, reveal: hide(message) });
    }
    return waiting;
  }

  async function forward(all: readonly Waiting[]): Promise<void> {
    let waiting = all;
    while (waiting.length > 0 && !hardStop.signal.aborted) {
      const round = firstOfEachGroup(waiting);
      const outcomes = await fifo.send(
        round.map(({ outgoing }) => outgoing),
        hardStop.signal,
      );
      const settled = await Promise.all(round.map((one, at) => settle(one, outcomes[at] ?? UNKNOWN)));
      remove(round.filter((_, at) => settled[at] === 'Sent'));
      // In the order in which they came, so that a packed one keeps its place.
      waiting = waiting.flatMap((one) => {
        const next = settled[round.indexOf(one)];
        if (next === undefined) return [one];
        return next === 'Sent' || next === 'Left' ? [] : [next];
      });
      const problem = outcomes.find(({ kind }) => kind === 'Failed');
      if (problem === undefined || problem.kind === 'Sent') {
        failures = 0;
        health.reached();
      } else if (signal.aborted) break;
      else await failed('not sent to the FIFO queue; kept in hand', problem.message);
    }
    await Promise.all(waiting.map(handBack));
  }

  /** What becomes of one that was tried: gone, or what is to be tried next in its place. */
  async function settle(one: Waiting, outcome: SendOutcome): Promise<'Sent' | 'Left' | Waiting> {
    const { message, what } = one;
    switch (outcome.kind) {
      case 'Sent':
        metrics.routed(what, 'forwarded');
        return 'Sent';
      case 'Failed':
        metrics.routed(what, 'failed');
        return one;
      case 'TooLarge': {
        const smaller = one.outgoing.body === message.body ? await packed(message, one.outgoing) : undefined;
        if (smaller !== undefined) return { ...one, outgoing: smaller };
        await one.reveal();
        leave(message, what, 'tooLarge', `${outcome.message} (${Buffer.byteLength(message.body)} bytes)`);
        return 'Left';
      }
      case 'Refused':
        await one.reveal();
        leave(message, what, 'refused', outcome.message);
        return 'Left';
    }
  }

  function remove(sent: readonly Waiting[]): void {
    if (sent.length === 0) return;
    const deletion = ingress
      .deleteAll(sent.map(({ message }) => message))
      .catch((error: unknown) =>
        logger.warn(
          { messageIds: sent.map(({ message }) => message.id), ...errorFields(error) },
          'messages sent to the FIFO queue but not deleted: they will be sent again and found there',
        ),
      )
      .finally(() => deletions.delete(deletion));
    deletions.add(deletion);
    for (const { reveal } of sent) void reveal();
  }

  async function handBack({ message, what, reveal }: Waiting): Promise<void> {
    metrics.routed(what, 'returned');
    await reveal();
    await ingress
      .changeVisibility(message, 0)
      .catch((error: unknown) =>
        logger.warn(
          { messageId: message.id, ...errorFields(error) },
          'message not handed back: it returns after its visibility timeout',
        ),
      );
  }

  function leave(
    { id: messageId, receiveCount }: QueueMessage,
    what: EventKind,
    outcome: 'unroutable' | 'tooLarge' | 'refused',
    problem: string,
  ): void {
    metrics.routed(what, outcome);
    logger.warn(
      { messageId, receiveCount, kind: what, problem },
      'message cannot be passed on, left to the dead-letter queue',
    );
  }

  function hide(message: QueueMessage): () => Promise<void> {
    return keepHidden(message, { inbox: ingress, visibilitySeconds, metrics, logger, clock });
  }

  async function failed(what: string, problem: string): Promise<void> {
    failures += 1;
    health.failed(problem);
    logger.warn({ failures, error: problem }, what);
    await sleep(clock, backoffMs(failures - 1, 500, 30_000, random), signal);
  }
}

const UNKNOWN: SendOutcome = { kind: 'Failed', message: 'the queue did not say what became of it' };

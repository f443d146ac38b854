import { describe, expect, it, vi } from 'vitest';
import { type MemoryQueue, type MemoryQueueOptions, memoryQueue } from '../../../test/fakes/queue.ts';
import { ManualClock } from '../../kube/clock.ts';
import { silentLogger } from '../../kube/log.ts';
import type { Outbox, OutgoingMessage, SendOutcome } from '../port.ts';
import { queueHealth } from './health.ts';
import { type RouterDependencies, runRouter } from './router.ts';

const attributes = (eventType: string) => ({
  source: { Type: 'String', Value: 'gitlab' },
  event_type: { Type: 'String', Value: eventType },
});
const envelope = (eventType: string, payload: unknown) =>
  JSON.stringify({ Message: JSON.stringify(payload), MessageAttributes: attributes(eventType) });
const aPipeline = (id: number) => envelope('pipeline', { id });
const aNote = (discussion: string, text: string) =>
  envelope('note', { object_attributes: { discussion_id: discussion, note: text } });

interface Bench {
  readonly clock: ManualClock;
  readonly ingress: MemoryQueue;
  readonly fifo: MemoryQueue;
  /** `kind outcome` in order. */
  readonly outcomes: string[];
  readonly problems: string[];
  start(overrides?: Partial<RouterDependencies>): { stop(): Promise<void> };
}

function aBench(fifoOptions: Partial<MemoryQueueOptions> = {}): Bench {
  const clock = new ManualClock();
  const ingress = memoryQueue({ clock, maxReceiveCount: 3 });
  const fifo = memoryQueue({ clock, fifo: true, ...fifoOptions });
  const outcomes: string[] = [];
  const problems: string[] = [];
  const warn = (fields: object) => void problems.push('problem' in fields ? String(fields.problem) : '');
  return {
    clock,
    ingress,
    fifo,
    outcomes,
    problems,
    start(overrides = {}) {
      const stop = new AbortController();
      const done = runRouter(
        {
          ingress,
          fifo,
          metrics: {
            routed: (kind, outcome) => outcomes.push(`${kind} ${outcome}`),
            extension: () => undefined,
          },
          health: queueHealth(clock),
          logger: { ...silentLogger, warn },
          clock,
          random: () => 0.5,
          ...overrides,
        },
        stop.signal,
      );
      return {
        stop() {
          stop.abort(new Error('stop'));
          return done;
        },
      };
    },
  };
}

/** The outbox, with an answer of the test's own for each message that it has one for. */
function answering(fifo: Outbox, answer: (message: OutgoingMessage) => SendOutcome | undefined): Outbox {
  return {
    async send(messages, signal) {
      const outcomes: SendOutcome[] = [];
      for (const message of messages)
        outcomes.push(answer(message) ?? (await fifo.send([message], signal))[0] ?? { kind: 'Sent' });
      return outcomes;
    },
  };
}

/** Packing is real work in another thread, which the test's clock knows nothing of. */
const eventually = (condition: () => boolean) =>
  vi.waitFor(() => expect(condition()).toBe(true), { timeout: 60_000 });

const AWAY: SendOutcome = { kind: 'Failed', message: 'no such host' };

describe('the router', () => {
  it('moves messages and deletes them afterwards', async () => {
    const { clock, ingress, fifo, outcomes, start } = aBench();
    const bodies = [aPipeline(1), aNote('d1', 'one'), aNote('d1', 'two'), aPipeline(2)];
    for (const body of bodies) ingress.put(body);
    const router = start();
    await clock.advance(1_000);
    await router.stop();
    expect(ingress.left).toEqual([]);
    expect(fifo.left.toSorted()).toEqual(bodies.toSorted());
    expect(outcomes.filter((word) => word === 'note forwarded').length).toBe(2);
    expect(outcomes.filter((word) => word === 'pipeline received').length).toBe(2);
  });

  it('keeps the order of a discussion', async () => {
    const { clock, ingress, fifo, start } = aBench();
    for (let at = 0; at < 30; at++) ingress.put(aNote(`d${at % 3}`, `${at}`));
    const router = start();
    await clock.advance(1_000);
    await router.stop();
    for (const discussion of ['d0', 'd1', 'd2']) {
      const texts = fifo.left
        .map((body) => JSON.parse(JSON.parse(body).Message).object_attributes)
        .filter(({ discussion_id }) => discussion_id === discussion)
        .map(({ note }) => Number(note));
      expect(texts).toEqual(texts.toSorted((a, b) => a - b));
      expect(texts.length).toBe(10);
    }
  });

  it('BR-15: passes nine of ten on when the fourth is poison, which ends in the dead-letter queue', async () => {
    const { clock, ingress, fifo, outcomes, problems, start } = aBench();
    for (let at = 1; at <= 10; at++) ingress.put(at === 4 ? 'hello' : aPipeline(at));
    const router = start();
    await clock.advance(1_000);
    expect(fifo.left.length).toBe(9);
    expect(ingress.left).toEqual(['hello']);
    expect(problems).toEqual([expect.stringContaining('source and event_type missing')]);
    await clock.advance(200_000);
    expect(ingress.dead).toEqual(['hello']);
    expect(outcomes.filter((word) => word === 'unknown unroutable').length).toBe(3);
    ingress.put(aPipeline(11));
    await clock.advance(1_000);
    expect(fifo.left.length).toBe(10);
    await router.stop();
  });
});

describe('while the FIFO queue is away', () => {
  it('what is in hand stays hidden and is sent afterwards; it was received once, and nothing more was received', async () => {
    const { clock, ingress, fifo, start } = aBench();
    const health = queueHealth(clock);
    let away = true;
    for (let at = 0; at < 20; at++) ingress.put(aPipeline(at));
    const router = start({ health, fifo: answering(fifo, () => (away ? AWAY : undefined)) });
    await clock.advance(600_000);
    expect(ingress.handedOut.length).toBe(10);
    expect(ingress.left.length).toBe(20);
    expect(fifo.left).toEqual([]);
    expect(health.problem()).toMatch(/no such host/);
    away = false;
    await clock.advance(60_000);
    expect(fifo.left.length).toBe(20);
    expect(ingress.left).toEqual([]);
    expect(ingress.handedOut.length).toBe(20);
    expect(health.problem()).toBeUndefined();
    await router.stop();
  });

  it('what is in hand at the stop is handed back at once', async () => {
    const { clock, ingress, fifo, outcomes, start } = aBench();
    const id = ingress.put(aPipeline(1));
    const router = start({ fifo: answering(fifo, () => AWAY) });
    await clock.advance(5_000);
    const stopped = router.stop();
    await clock.advance(1);
    await stopped;
    expect(outcomes.at(-1)).toBe('pipeline returned');
    expect(ingress.calls.at(-1)).toBe(`hide ${id} 0`);
    expect(clock.pending).toBeLessThanOrEqual(2);
  });

  it('a request that never ends is given up after the grace', async () => {
    const { clock, ingress, outcomes, start } = aBench();
    ingress.put(aPipeline(1));
    const silent: Outbox = {
      send: (messages, signal) =>
        new Promise((resolve) =>
          signal?.addEventListener('abort', () => resolve(messages.map(() => AWAY)), { once: true }),
        ),
    };
    const router = start({ fifo: silent });
    await clock.advance(1_000);
    const stopped = router.stop();
    await clock.advance(11_000);
    await stopped;
    expect(outcomes.at(-1)).toBe('pipeline returned');
  });
});

describe('a message that fails alone', () => {
  it('is overtaken by no other of its discussion', async () => {
    const { clock, ingress, fifo, start } = aBench();
    for (const body of [aNote('d1', 'one'), aNote('d1', 'two'), aNote('d2', 'three')]) ingress.put(body);
    let failures = 2;
    const flaky = answering(fifo, ({ body }) => (body.includes('one') && failures-- > 0 ? AWAY : undefined));
    const router = start({ fifo: flaky });
    await clock.advance(10_000);
    await router.stop();
    expect(fifo.left.map((body) => /one|two|three/.exec(body)?.[0])).toEqual(['three', 'one', 'two']);
  });

  it('is left when the queue never takes it, and those behind it go on', async () => {
    const { clock, ingress, fifo, outcomes, start } = aBench();
    for (const body of [aNote('d1', 'one'), aNote('d1', 'two')]) ingress.put(body);
    const refusing = answering(fifo, ({ body }) =>
      body.includes('one') ? { kind: 'Refused', message: 'InvalidMessageContents' } : undefined,
    );
    const router = start({ fifo: refusing });
    await clock.advance(1_000);
    expect(fifo.left.length).toBe(1);
    expect(ingress.left.length).toBe(1);
    expect(outcomes).toContain('note refused');
    await clock.advance(200_000);
    expect(ingress.dead.length).toBe(1);
    await router.stop();
  });
});

describe('a message that is too large for the FIFO queue', () => {
  it('BR-18: is packed, when that makes it small enough', async () => {
    const { clock, ingress, fifo, start } = aBench({ maxBytes: 262_144 });
    ingress.put(aNote('d1', 'x'.repeat(700_000)));
    ingress.put(aNote('d1', 'behind'));
    const router = start();
    await eventually(() => fifo.left.length === 2);
    await clock.advance(1_000);
    await router.stop();
    expect(fifo.left.map((body) => body.includes('gzip+base64'))).toEqual([true, false]);
    expect(ingress.left).toEqual([]);
  });

  it('BR-18: is left with a clear word when it stays too large, and holds up no other', async () => {
    const { clock, ingress, fifo, outcomes, problems, start } = aBench({ maxBytes: 1_000 });
    let state = 1;
    const noise = Array.from({ length: 20_000 }, () => {
      state = (state * 48_271) % 2_147_483_647;
      return String.fromCharCode(33 + (state % 90));
    }).join('');
    ingress.put(aNote('d1', noise));
    ingress.put(aNote('d1', 'behind'));
    const router = start();
    await eventually(() => fifo.left.length === 1);
    expect(outcomes).toContain('note tooLarge');
    expect(problems).toEqual([expect.stringMatching(/must be shorter than 1000 bytes.*\(\d{5} bytes\)/)]);
    await vi.waitFor(
      async () => {
        await clock.advance(10_000);
        expect(ingress.dead.length).toBe(1);
      },
      { timeout: 60_000 },
    );
    await router.stop();
  });
});

it('a deletion that fails makes no second message: the queue knows the id', async () => {
  const { clock, ingress, fifo, start } = aBench();
  ingress.put(aPipeline(1));
  let failures = 1;
  const router = start({
    ingress: {
      ...ingress,
      deleteAll: (messages) =>
        failures-- > 0 ? Promise.reject(new Error('no answer')) : ingress.deleteAll(messages),
    },
  });
  await clock.advance(60_000);
  await router.stop();
  expect(ingress.handedOut.length).toBe(2);
  expect(ingress.left).toEqual([]);
  expect(fifo.left.length).toBe(1);
});

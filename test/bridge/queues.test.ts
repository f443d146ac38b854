// Router and worker on the queues of two emulators, since each is lax where the other is strict: fauxqs hands out one
// message of a group at a time and knows deduplication ids for five minutes; moto hands out several, and refuses a batch
// as a whole because of one message.
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MessageOutcome } from '../../src/bridge/metrics.ts';
import type { Handled, Inbox, QueueMessage } from '../../src/bridge/port.ts';
import { decodeEnvelope, encodeEnvelope } from '../../src/bridge/queue/envelope.ts';
import { queueHealth } from '../../src/bridge/queue/health.ts';
import { type RouterDependencies, runRouter } from '../../src/bridge/queue/router.ts';
import { runWorker, type WorkerDependencies } from '../../src/bridge/queue/worker.ts';
import { systemClock } from '../../src/kube/clock.ts';
import { silentLogger } from '../../src/kube/log.ts';
import { until } from '../builders/pool.ts';
import { anEmulator, type EMULATORS, type EmulatedQueue, type Emulator } from './emulators.ts';

const DURABLE: Handled = { kind: 'Durable' };
/** An emulator lets an abandoned poll live on until its wait is over, and gives it what comes meanwhile. */
const POLL = { waitSeconds: 1 };
/** Wide enough for a machine that is busy with other tests, narrow enough to be waited for. */
const SOON_AGAIN = { visibilitySeconds: 3 };

const ATTRIBUTES = { source: 'gitlab', event_type: 'note' };
const aNote = (discussion: string, text: string, padding = '') => ({
  object_kind: 'note',
  object_attributes: { discussion_id: discussion, note: text, padding },
});
const packed = (payload: unknown, eventType = 'note') =>
  encodeEnvelope({ source: 'gitlab', eventType, payload });

const NAMES: readonly (keyof typeof EMULATORS)[] = ['fauxqs', 'moto'];

// Side by side: they mostly wait for something to become visible again.
describe.each(NAMES)('on %s', { concurrent: true }, (name) => {
  let emulator: Emulator;
  beforeAll(async () => {
    emulator = await anEmulator(name);
    // The first start installs moto.
  }, 300_000);
  afterAll(() => emulator?.close());

  describe('the router', () => {
    it('BR-14: passes one note in its three shapes on, as they came, in the group of its discussion', async () => {
      const [enveloped, rawly, to] = await Promise.all([
        emulator.standard(),
        emulator.standard(),
        emulator.fifo(),
      ]);
      const publish = await emulator.topic(enveloped);
      const publishRaw = await emulator.topic(rawly, { raw: true });
      const text = JSON.stringify(aNote('d1', 'hello'));
      await publish(gzipSync(text).toString('base64'), { ...ATTRIBUTES, content_encoding: 'gzip+base64' });
      await publish(text, ATTRIBUTES);
      await publishRaw(text, ATTRIBUTES);
      const routers = [aRouter(enveloped, to), aRouter(rawly, to)];
      const seen: QueueMessage[] = [];
      const worker = aWorker(to.queue, async (message) => {
        seen.push(message);
        return DURABLE;
      });
      await until('all three', () => seen.length === 3);
      await until('nothing is left', async () => {
        const counts = await Promise.all([enveloped, rawly, to].map((queue) => queue.left()));
        return counts.every((count) => count === 0);
      });
      await Promise.all([...routers, worker].map(({ stop }) => stop()));
      expect(seen.map(({ groupId }) => groupId)).toEqual(['d1', 'd1', 'd1']);
      for (const message of seen)
        expect(await decodeEnvelope(message)).toEqual({
          ok: true,
          event: { source: 'gitlab', eventType: 'note', payload: JSON.parse(text) },
        });
    });

    it('passes attributes of every type on', async () => {
      const [from, to] = await Promise.all([emulator.standard(), emulator.fifo()]);
      await from.put(JSON.stringify(aNote('d1', 'hello')), {
        ...ATTRIBUTES,
        attempt: { DataType: 'Number', StringValue: '3' },
        digest: { DataType: 'Binary', BinaryValue: new Uint8Array([0, 255, 7]) },
      });
      const router = aRouter(from, to);
      const [message] = await received(to, 1);
      await router.stop();
      expect(message?.attributes).toEqual({ ...ATTRIBUTES, attempt: '3' });
      expect(message?.native?.['attempt']).toEqual({ type: 'Number', value: '3' });
      expect(message?.native?.['digest']?.type).toBe('Binary');
      expect([...Buffer.from(message?.native?.['digest']?.value ?? '')]).toEqual([0, 255, 7]);
    });

    it('BR-15: passes nine of ten on when the fourth is poison, which ends in the dead-letter queue', async () => {
      const [from, to] = await Promise.all([emulator.standard({ maxReceiveCount: 2 }), emulator.fifo()]);
      for (let at = 1; at <= 10; at++) await from.put(at === 4 ? 'hello' : await packed({ at }, 'pipeline'));
      const router = aRouter(from, to, SOON_AGAIN);
      await until('the poison is dead', async () => (await from.dead()).length === 1);
      expect(await from.dead()).toEqual(['hello']);
      expect(await from.left()).toBe(0);
      expect(await to.left()).toBe(9);
      await from.put(await packed({ at: 11 }, 'pipeline'));
      await until('it goes on working', async () => (await to.left()) === 10);
      await router.stop();
    });

    it('sends a message once, whose deletion had failed', async () => {
      const [from, to] = await Promise.all([emulator.standard(), emulator.fifo()]);
      await from.put(await packed(aNote('d1', 'once')));
      let failures = 1;
      const router = aRouter(from, to, {
        ...SOON_AGAIN,
        ingress: {
          ...from.queue,
          deleteAll: (messages) =>
            failures-- > 0 ? Promise.reject(new Error('no answer')) : from.queue.deleteAll(messages),
        },
      });
      await until('it is deleted', async () => failures < 0 && (await from.left()) === 0);
      await router.stop();
      expect(router.outcomes.filter((outcome) => outcome === 'note forwarded').length).toBeGreaterThan(1);
      expect(await to.left()).toBe(1);
    });

    it('BR-18: passes messages of 700 KB on, which do not fit into one request', async () => {
      const [from, to] = await Promise.all([emulator.standard(), emulator.fifo()]);
      const bodies = ['one', 'two', 'three'].map((text) =>
        JSON.stringify(aNote('d1', text, 'x'.repeat(700_000))),
      );
      for (const body of bodies) await from.put(body, ATTRIBUTES);
      const router = aRouter(from, to);
      const messages = await received(to, 3);
      await router.stop();
      expect(messages.map(({ body }) => body)).toEqual(bodies);
    });

    it('BR-18: packs what is too large for the FIFO queue; what stays too large holds up no other', async () => {
      const [from, to] = await Promise.all([
        emulator.standard({ maxReceiveCount: 2 }),
        emulator.fifo({ maximumMessageSize: 256 * 1024 }),
      ]);
      const bodies = [
        JSON.stringify(aNote('d1', 'small')),
        JSON.stringify(aNote('d2', 'large', 'x'.repeat(700_000))),
        JSON.stringify(aNote('d3', 'noise', randomBytes(500_000).toString('base64'))),
        JSON.stringify(aNote('d4', 'also small')),
      ];
      for (const body of bodies) await from.put(body, ATTRIBUTES);
      const router = aRouter(from, to, SOON_AGAIN);
      const messages = await received(to, 3);
      await until('the noise is dead', async () => (await from.dead()).length === 1);
      await router.stop();
      expect((await from.dead())[0] === bodies[2]).toBe(true);
      const texts = await Promise.all(messages.map(noteOf));
      expect(texts.map(({ note }) => note).toSorted()).toEqual(['also small', 'large', 'small']);
      expect(router.outcomes).toContain('note tooLarge');
    });
  });

  describe('router and worker', () => {
    it('keep the order of each discussion, and lose nothing', async () => {
      const [from, to] = await Promise.all([emulator.standard(), emulator.fifo()]);
      const discussions = Array.from({ length: 6 }, (_, at) => `d${at}`);
      for (let at = 0; at < 60; at++)
        await from.put(await packed(aNote(discussions[at % discussions.length] ?? '', String(at))));
      const router = aRouter(from, to);
      const handled: { readonly discussion: string; readonly at: number }[] = [];
      const together = new Set<string>();
      const worker = aWorker(to.queue, async (message) => {
        const { discussion_id: discussion, note } = await noteOf(message);
        // Whoever is faster must not come before whoever was first.
        expect(together.has(discussion)).toBe(false);
        together.add(discussion);
        await pause((Number(note) * 7) % 20);
        together.delete(discussion);
        handled.push({ discussion, at: Number(note) });
        return DURABLE;
      });
      await until('all are handled', async () => handled.length >= 60 && (await to.left()) === 0);
      await Promise.all([router.stop(), worker.stop()]);
      expect(worker.outcomes.filter((outcome) => outcome !== 'handled')).toEqual([]);
      for (const discussion of discussions) {
        const order = handled.filter((one) => one.discussion === discussion).map(({ at }) => at);
        expect(order).toEqual(order.toSorted((a, b) => a - b));
      }
      expect(new Set(handled.map(({ at }) => at)).size).toBe(60);
    });
  });

  describe('the worker', () => {
    it('BR-17: keeps a message hidden for as long as it takes; it is handed out once', async () => {
      const to = await emulator.fifo();
      await put(to, 'd1', ['long']);
      const seen: number[] = [];
      const worker = aWorker(
        to.queue,
        async ({ receiveCount }) => {
          seen.push(receiveCount);
          await pause(28_000);
          return DURABLE;
        },
        // Three times in its time; a machine may stand still for six seconds and it stays hidden.
        { visibilitySeconds: 9 },
      );
      await until('it is deleted', async () => seen.length > 0 && (await to.left()) === 0);
      await worker.stop();
      expect(seen).toEqual([1]);
      expect(worker.extensions.filter((outcome) => outcome === 'extended').length).toBeGreaterThanOrEqual(3);
    });

    it('BR-17: handed out again since it could not be hidden, a message does its work once', async () => {
      const to = await emulator.fifo();
      await put(to, 'd1', ['long']);
      const failing: Inbox = {
        ...to.queue,
        changeVisibility: () => Promise.reject(new Error('throttled')),
      };
      const runs = new Set<string>();
      let made = 0;
      const deliveries: number[] = [];
      const handle = async ({ body, receiveCount }: QueueMessage): Promise<Handled> => {
        deliveries.push(receiveCount);
        if (!runs.has(body)) {
          runs.add(body);
          made += 1;
          await pause(5_000);
        }
        return DURABLE;
      };
      const workers = [
        aWorker(failing, handle, { visibilitySeconds: 1 }),
        aWorker(failing, handle, { visibilitySeconds: 1 }),
      ];
      await until('it is deleted', async () => deliveries.length > 1 && (await to.left()) === 0);
      await Promise.all(workers.map(({ stop }) => stop()));
      expect(made).toBe(1);
      expect(workers.flatMap(({ extensions }) => extensions)).not.toContain('extended');
    });

    it('lets a message that always fails end in the dead-letter queue, and goes on with its discussion', async () => {
      const to = await emulator.fifo({ maxReceiveCount: 2 });
      await put(to, 'd1', ['bad']);
      const handled: string[] = [];
      const worker = aWorker(
        to.queue,
        async ({ body }) => {
          if (body === 'bad') throw new Error('nobody can do this');
          handled.push(body);
          return DURABLE;
        },
        { visibilitySeconds: 1 },
      );
      await until('it is dead', async () => (await to.dead()).length === 1);
      await put(to, 'd1', ['good']);
      await until('the next one is handled', () => handled.length === 1);
      await worker.stop();
      expect(await to.dead()).toEqual(['bad']);
    });

    it('hands back at once what it cannot finish before it stops', async () => {
      const to = await emulator.fifo();
      await put(to, 'd1', ['one']);
      const begun = Promise.withResolvers<void>();
      const worker = aWorker(
        to.queue,
        (_, signal) => {
          begun.resolve();
          return new Promise<never>((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
          );
        },
        { visibilitySeconds: 600, graceMs: 4_000 },
      );
      await begun.promise;
      await worker.stop();
      const [again] = await received(to, 1);
      expect(again?.receiveCount).toBe(2);
    });
  });
});

describe('several messages of one discussion in one receive', { concurrent: true }, () => {
  let emulator: Emulator;
  beforeAll(async () => {
    emulator = await anEmulator('moto');
  }, 300_000);
  afterAll(() => emulator?.close());

  it('are handled in their order; behind one that failed they go back and come again in their order', async () => {
    const to = await emulator.fifo();
    await put(to, 'd1', ['1', '2', '3', '4']);
    const received: (readonly string[])[] = [];
    const watched: Inbox = {
      ...to.queue,
      async receive(options) {
        const messages = await to.queue.receive(options);
        if (messages.length > 0) received.push(messages.map(({ body }) => body));
        return messages;
      },
    };
    const log: string[] = [];
    let failures = 1;
    const worker = aWorker(
      watched,
      async ({ body }) => {
        if (body === '2' && failures-- > 0) {
          log.push('failed 2');
          throw new Error('GitLab is away');
        }
        log.push(body);
        return DURABLE;
      },
      SOON_AGAIN,
    );
    await until('all are done', async () => log.length >= 5 && (await to.left()) === 0);
    await worker.stop();
    expect(received[0]).toEqual(['1', '2', '3', '4']);
    expect(log).toEqual(['1', 'failed 2', '2', '3', '4']);
    expect(worker.outcomes.filter((outcome) => outcome === 'returned').length).toBeGreaterThanOrEqual(2);
  });
});

function aRouter(from: EmulatedQueue, to: EmulatedQueue, overrides: Partial<RouterDependencies> = {}) {
  const outcomes: string[] = [];
  const stop = new AbortController();
  const done = runRouter(
    {
      ingress: from.queue,
      fifo: to.queue,
      metrics: {
        routed: (kind, outcome) => outcomes.push(`${kind} ${outcome}`),
        extension: () => undefined,
      },
      health: queueHealth(systemClock),
      logger: silentLogger,
      clock: systemClock,
      random: Math.random,
      ...POLL,
      ...overrides,
    },
    stop.signal,
  );
  return {
    outcomes,
    stop() {
      stop.abort(new Error('stop'));
      return done;
    },
  };
}

function aWorker(
  queue: Inbox,
  handle: WorkerDependencies['handle'],
  overrides: Partial<WorkerDependencies> = {},
) {
  const outcomes: MessageOutcome[] = [];
  const extensions: string[] = [];
  const stop = new AbortController();
  const done = runWorker(
    {
      queue,
      handle,
      outage: { report: () => false, over: async () => undefined },
      ready: () => true,
      metrics: {
        message: (outcome) => outcomes.push(outcome),
        extension: (outcome) => extensions.push(outcome),
      },
      health: queueHealth(systemClock),
      logger: silentLogger,
      clock: systemClock,
      random: Math.random,
      ...POLL,
      ...overrides,
    },
    stop.signal,
  );
  return {
    outcomes,
    extensions,
    stop() {
      stop.abort(new Error('stop'));
      return done;
    },
  };
}

async function put(to: EmulatedQueue, groupId: string, bodies: readonly string[]): Promise<void> {
  for (const body of bodies) await to.put(body, {}, { groupId, deduplicationId: `${groupId}-${body}` });
}

/** Takes so many messages out of the queue. */
async function received({ queue }: EmulatedQueue, count: number): Promise<readonly QueueMessage[]> {
  const messages: QueueMessage[] = [];
  await until(`${count} messages`, async () => {
    const some = await queue.receive({ max: 10, waitSeconds: 1, signal: AbortSignal.timeout(60_000) });
    await queue.deleteAll(some);
    messages.push(...some);
    return messages.length >= count;
  });
  return messages;
}

async function noteOf(message: QueueMessage): Promise<{ discussion_id: string; note: string }> {
  const decoded = await decodeEnvelope(message);
  if (!decoded.ok) throw new Error(decoded.message);
  return (decoded.event.payload as ReturnType<typeof aNote>).object_attributes;
}

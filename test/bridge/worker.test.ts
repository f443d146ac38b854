import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Queue, QueueMessage } from '../../src/bridge/port.ts';
import { encodeEnvelope } from '../../src/bridge/queue/envelope.ts';
import { createClient } from '../../src/kube/client.ts';
import { connect } from '../../src/kube/config.ts';
import { EVENT } from '../../src/kube/kinds.ts';
import type { KubeClient } from '../../src/kube/port.ts';
import { createTransport } from '../../src/kube/transport.ts';
import { aPipelineEvent } from '../builders/pipeline-event.ts';
import { until } from '../builders/pool.ts';
import { aWorker, type BridgeWorld, bridgeWorld, type TestQueue } from './bridge-world.ts';

let world: BridgeWorld;
beforeAll(async () => {
  world = await bridgeWorld();
});
afterAll(() => world?.close());

const ATTRIBUTES = { source: 'gitlab', event_type: 'pipeline' };
const packed = (payload: unknown) => encodeEnvelope({ source: 'gitlab', eventType: 'pipeline', payload });
/** For what is handed out again: two seconds instead of thirty. */
const SOON_AGAIN = { visibilitySeconds: 2 };
const settled = (queue: TestQueue) => until('the queue is empty', () => queue.left() === 0);

describe('the bridge', () => {
  it('makes one run of a message that is delivered five times, through SNS', async () => {
    const { name, project } = await world.aWorkflow();
    const events = world.aQueue();
    for (let copy = 0; copy < 5; copy++)
      await events.publish(JSON.stringify(aPipelineEvent({ project })), ATTRIBUTES);
    const worker = aWorker(world, events.queue);
    await settled(events);
    await worker.stop();
    const runs = await world.runsOf(name);
    expect(runs.map(({ spec }) => spec)).toMatchObject([
      {
        workflowRef: { name },
        mergeRequest: { project, iid: 7, sha: 'a'.repeat(40) },
        trigger: { kind: 'Pipeline', eventId: '31', user: 'alice', userId: 9 },
      },
    ]);
    expect(await worker.count('runs', 'created')).toBe(1);
    // A machine that is busy lets a message be seen again.
    expect(await worker.count('runs', 'existing')).toBeGreaterThanOrEqual(4);
    expect(events.dead()).toEqual([]);
  });

  it('BR-15: handles nine of ten when the fourth is poison, which stays until the dead-letter queue takes it', async () => {
    const { name, project } = await world.aWorkflow();
    const events = world.aQueue({ maxReceiveCount: 3 });
    for (let number = 1; number <= 10; number++) {
      await events.send(
        number === 4 ? 'hello' : await packed(aPipelineEvent({ project, pipelineId: number })),
      );
    }
    const seen: number[] = [];
    const worker = aWorker(
      world,
      watched(events.queue, (message) => message.body === 'hello' && seen.push(message.receiveCount)),
      SOON_AGAIN,
    );
    await until('nine runs', async () => (await world.runsOf(name)).length === 9);
    await until('the poison is dead', () => events.dead().length === 1);
    expect(events.dead()).toEqual(['hello']);
    expect(seen).toEqual([1, 2, 3]);
    expect(await worker.count('messages', 'undecodable')).toBe(3);
    // A machine that stands still for longer than the visibility hands one out twice; there is one run all the same.
    expect(await worker.count('messages', 'handled')).toBeGreaterThanOrEqual(9);
    expect(await worker.count('runs', 'created')).toBe(9);

    await events.send(await packed(aPipelineEvent({ project, pipelineId: 11 })));
    await until('it goes on working', async () => (await world.runsOf(name)).length === 10);
    await worker.stop();
  });

  it('BR-09: pipelines without a merge request start nothing and are deleted', async () => {
    const { name, project } = await world.aWorkflow();
    const events = world.aQueue();
    const without = { project, mergeRequest: false };
    await events.send(await packed(aPipelineEvent({ ...without, pipelineId: 1, source: 'push' })));
    await events.send(await packed(aPipelineEvent({ ...without, pipelineId: 2, source: 'parent_pipeline' })));
    await events.send(await packed(aPipelineEvent({ project, pipelineId: 3 })));
    const worker = aWorker(world, events.queue);
    await settled(events);
    await worker.stop();
    expect((await world.runsOf(name)).map(({ spec }) => spec.trigger.eventId)).toEqual(['3']);
    expect(events.dead()).toEqual([]);
    expect(await worker.count('skips', 'NotMergeRequestPipeline')).toBe(2);
  });

  it('BR-14: reads the same webhook in its three shapes as one run', async () => {
    const { name, project } = await world.aWorkflow();
    const enveloped = world.aQueue();
    const raw = world.aQueue({ raw: true });
    const webhook = aPipelineEvent({ project });
    await enveloped.send(await packed(webhook));
    await enveloped.publish(JSON.stringify(webhook), ATTRIBUTES);
    await raw.publish(JSON.stringify(webhook), ATTRIBUTES);
    await raw.send(JSON.stringify(webhook), ATTRIBUTES);
    const workers = [aWorker(world, enveloped.queue), aWorker(world, raw.queue)];
    await settled(enveloped);
    await settled(raw);
    for (const worker of workers) {
      await worker.stop();
      expect(await worker.count('messages', 'handled')).toBe(2);
    }
    expect((await world.runsOf(name)).length).toBe(1);
  });

  it('BR-18 (a): takes a message of 700 KB', async () => {
    const { name, project } = await world.aWorkflow();
    const events = world.aQueue();
    await events.send(JSON.stringify(aPipelineEvent({ project, padding: 700_000 })), ATTRIBUTES);
    const worker = aWorker(world, events.queue);
    await settled(events);
    await worker.stop();
    expect((await world.runsOf(name)).length).toBe(1);
  });

  it('BR-17: killed between creating the run and deleting the message, it ends with one run', async () => {
    const { name, project } = await world.aWorkflow();
    const events = world.aQueue();
    await events.send(await packed(aPipelineEvent({ project })));
    const dying: Queue = { ...events.queue, delete: () => Promise.reject(new Error('the process is gone')) };
    const first = aWorker(world, dying, SOON_AGAIN);
    await until('the run is there', async () => (await world.runsOf(name)).length === 1);
    await first.stop();
    expect(events.left()).toBe(1);
    const second = aWorker(world, events.queue, SOON_AGAIN);
    await settled(events);
    await second.stop();
    expect((await world.runsOf(name)).length).toBe(1);
    expect(await second.count('runs', 'existing')).toBe(1);
  });

  it('BR-17: handed out again while its run is being made, since it could not be hidden, it makes no second run', async () => {
    const { name, project } = await world.aWorkflow();
    const events = world.aQueue({ maxReceiveCount: 100 });
    await events.send(await packed(aPipelineEvent({ project })));
    const queue: Queue = { ...events.queue, changeVisibility: () => Promise.reject(new Error('throttled')) };
    const again = Promise.withResolvers<void>();
    const slow: KubeClient = {
      ...world.kube,
      async create(...args) {
        const made = await world.kube.create(...args);
        await again.promise;
        return made;
      },
    };
    // With its hands full it does not get the copy itself.
    const first = aWorker(world, queue, { kube: slow, visibilitySeconds: 1, concurrency: 1 });
    await until('the run is there', async () => (await world.runsOf(name)).length === 1);
    const second = aWorker(world, queue, { visibilitySeconds: 1 });
    await until('it was found', async () => (await second.count('runs', 'existing')) > 0);
    again.resolve();
    await settled(events);
    await Promise.all([first.stop(), second.stop()]);
    expect((await world.runsOf(name)).length).toBe(1);
    expect(await first.count('runs', 'created')).toBe(1);
    expect(await second.count('runs', 'created')).toBe(0);
    expect(await first.count('messages', 'handled')).toBeGreaterThanOrEqual(1);
  });

  it('leaves a message that the API server refuses to the dead-letter queue, and goes on with the others', async () => {
    const { name, project } = await world.aWorkflow();
    const events = world.aQueue({ maxReceiveCount: 2 });
    world.gitlab.aMergeRequest(project, 3_000_000_000);
    await events.send(await packed(aPipelineEvent({ project, pipelineId: 1, iid: 3_000_000_000 })));
    await events.send(await packed(aPipelineEvent({ project, pipelineId: 2 })));
    const worker = aWorker(world, events.queue, SOON_AGAIN);
    await until('it is dead', () => events.dead().length === 1 && events.left() === 0);
    await worker.stop();
    expect((await world.runsOf(name)).map(({ spec }) => spec.trigger.eventId)).toEqual(['2']);
  });

  it('tells the workflow why an event started nothing', async () => {
    const { name, project } = await world.aWorkflow();
    const events = world.aQueue();
    await events.send(await packed(aPipelineEvent({ project, status: 'success' })));
    const worker = aWorker(world, events.queue);
    await settled(events);
    await worker.stop();
    await world.events.flush();
    const { items } = await world.kube.list(EVENT, {
      namespace: world.namespaces.agents,
      fieldSelector: `involvedObject.name=${name},reason=SkippedRule`,
    });
    expect(items.map(({ message }) => message)).toEqual([
      `pipeline 31 of ${project}: no rules: only failed pipelines run, this one is success`,
    ]);
    expect(await worker.count('skips', 'SkippedRule')).toBe(1);
  });
});

describe('while something is not there', () => {
  it('the API server: nothing is deleted and nothing more is received; afterwards the runs are made', async () => {
    const { name, project } = await world.aWorkflow();
    const events = world.aQueue({ maxReceiveCount: 3 });
    for (let pipelineId = 1; pipelineId <= 3; pipelineId++)
      await events.send(await packed(aPipelineEvent({ project, pipelineId })));
    const down = await unreachable();
    let current = down.kube;
    const received: string[] = [];
    const worker = aWorker(
      world,
      watched(events.queue, ({ id }) => received.push(id)),
      { kube: delegating(() => current), ...SOON_AGAIN },
    );
    await until('all have failed', async () => (await worker.count('messages', 'failed')) === 3);
    // Twice the visibility timeout: without the pause they would be received again and again, and die.
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    expect(received.length).toBeLessThanOrEqual(4);
    expect(events.dead()).toEqual([]);
    expect(events.left()).toBe(3);
    current = world.kube;
    await settled(events);
    await worker.stop();
    await down.close();
    expect((await world.runsOf(name)).length).toBe(3);
  });

  it('the workflows: nothing is received before they are known', async () => {
    const { name, project } = await world.aWorkflow();
    const events = world.aQueue();
    await events.send(await packed(aPipelineEvent({ project })));
    let known = false;
    const received: string[] = [];
    const worker = aWorker(
      world,
      watched(events.queue, ({ id }) => received.push(id)),
      {
        workflows: () => (known ? world.workflows.list() : undefined),
      },
    );
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(received).toEqual([]);
    known = true;
    await settled(events);
    await worker.stop();
    expect((await world.runsOf(name)).length).toBe(1);
  });

  it('the queue: receiving is tried again', async () => {
    const { project } = await world.aWorkflow();
    const events = world.aQueue();
    await events.send(await packed(aPipelineEvent({ project })));
    let failures = 2;
    const flaky: Queue = {
      ...events.queue,
      receive: (options) =>
        failures-- > 0 ? Promise.reject(new Error('no such host')) : events.queue.receive(options),
    };
    const worker = aWorker(world, flaky);
    await settled(events);
    await worker.stop();
  });
});

describe('at shutdown', () => {
  it('what is in hand is finished, and nothing more is received', async () => {
    const { name, project } = await world.aWorkflow();
    const events = world.aQueue({ visibilitySeconds: 30 });
    await events.send(await packed(aPipelineEvent({ project })));
    const gate = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const slow: KubeClient = {
      ...world.kube,
      async create(...args) {
        started.resolve();
        await gate.promise;
        return world.kube.create(...args);
      },
    };
    const worker = aWorker(world, events.queue, { kube: slow });
    await started.promise;
    const stopped = worker.stop();
    await events.send(await packed(aPipelineEvent({ project, pipelineId: 32 })));
    gate.resolve();
    await stopped;
    expect((await world.runsOf(name)).map(({ spec }) => spec.trigger.eventId)).toEqual(['31']);
    expect(events.left()).toBe(1);
  });

  it('what cannot be finished in time is handed back at once, not after its visibility timeout', async () => {
    const { project } = await world.aWorkflow();
    const events = world.aQueue({ visibilitySeconds: 600 });
    await events.send(await packed(aPipelineEvent({ project })));
    const silent = await silence();
    // The emulator lets an abandoned poll live on until its wait is over: shorter than the grace.
    const worker = aWorker(world, events.queue, {
      kube: silent.kube,
      graceMs: 2_000,
      waitSeconds: 1,
      visibilitySeconds: 600,
    });
    await until('the call hangs', () => silent.connections() > 0);
    await worker.stop();
    expect(await worker.count('messages', 'returned')).toBe(1);
    const again = await events.queue.receive({ max: 1, waitSeconds: 1, signal: AbortSignal.timeout(10_000) });
    expect(again.map(({ receiveCount }) => receiveCount)).toEqual([2]);
    await silent.close();
  });
});

describe('the queue', () => {
  it('rejects a long poll with the reason of its signal, at once', async () => {
    const events = world.aQueue();
    const stop = new AbortController();
    const poll = events.queue.receive({ max: 10, waitSeconds: 20, signal: stop.signal });
    const reason = new Error('stop now');
    setTimeout(() => stop.abort(reason), 100);
    await expect(poll).rejects.toBe(reason);
    await expect(events.queue.receive({ max: 1, waitSeconds: 1, signal: stop.signal })).rejects.toBe(reason);
  });

  it('hands back with a visibility of 0 and counts the receives', async () => {
    const events = world.aQueue({ visibilitySeconds: 600 });
    await events.queue.send([{ body: 'one' }]);
    const receive = () =>
      events.queue.receive({ max: 10, waitSeconds: 1, signal: AbortSignal.timeout(10_000) });
    const [first] = await receive();
    expect(await receive()).toEqual([]);
    await events.queue.changeVisibility(first!, 0);
    const [second] = await receive();
    expect([first?.receiveCount, second?.receiveCount]).toEqual([1, 2]);
    await events.queue.delete(second!);
    expect(events.left()).toBe(0);
  });
});

function watched(queue: Queue, onMessage: (message: QueueMessage) => unknown): Queue {
  return {
    ...queue,
    async receive(options) {
      const messages = await queue.receive(options);
      for (const message of messages) onMessage(message);
      return messages;
    },
  };
}

function delegating(client: () => KubeClient): KubeClient {
  return {
    get: (...args) => client().get(...args),
    list: (...args) => client().list(...args),
    create: (...args) => client().create(...args),
    replace: (...args) => client().replace(...args),
    patch: (...args) => client().patch(...args),
    delete: (...args) => client().delete(...args),
  };
}

/** A client of an API server at an address where nobody listens. */
async function unreachable(): Promise<{ readonly kube: KubeClient; close(): Promise<void> }> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await new Promise((resolve) => server.close(resolve));
  return clientOf(port);
}

/** A client of a server that takes connections and never answers. */
async function silence(): Promise<{
  readonly kube: KubeClient;
  connections(): number;
  close(): Promise<void>;
}> {
  const sockets = new Set<{ destroy(): void }>();
  const server = createServer((socket) => sockets.add(socket)).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  const client = clientOf(typeof address === 'object' && address !== null ? address.port : 0);
  return {
    kube: client.kube,
    connections: () => sockets.size,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      await client.close();
    },
  };
}

function clientOf(port: number): { readonly kube: KubeClient; close(): Promise<void> } {
  const transport = createTransport(
    connect({ kind: 'Token', server: `https://127.0.0.1:${port}`, token: 'none' }),
  );
  return { kube: createClient(transport), close: () => transport.close() };
}

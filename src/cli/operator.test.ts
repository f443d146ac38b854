import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { HummingbirdOperator } from '../kube/operator.ts';
import { keepOperating, type OperatorParts, runOperator } from './operator.ts';

type Operator = OperatorParts['operator'];

/** Parts that write down what was done to them. */
function parts(operator: Partial<Pick<Operator, 'start' | 'stop'>> = {}) {
  const done: string[] = [];
  const lease = new AbortController();
  const says = (what: string) => async () => void done.push(what);
  const joined: OperatorParts = {
    log: pino({ level: 'silent' }),
    registry: new Registry(),
    healthPort: 0,
    events: { record: () => undefined, flush: says('flush') },
    operator: Object.assign(Object.create(HummingbirdOperator.prototype), {
      start: says('start'),
      stop: says('stop'),
      ...operator,
    }),
    checks: [],
    loops: [
      {
        name: 'bridge',
        run: (signal) =>
          new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true })),
      },
    ],
    stopAgents: says('stopAgents'),
    leaseLost: lease.signal,
    // As the Lease itself: it is over afterwards, in good order.
    close: async () => {
      done.push('close');
      lease.abort(new Error('the replica stopped'));
    },
  };
  return { joined, done, lease };
}

describe('runOperator', () => {
  it('stops everything that acts before it gives the Lease back, and ends well when it was asked to stop', async () => {
    const { joined, done } = parts();
    const stop = new AbortController();
    const running = runOperator(joined, stop.signal);
    await expect.poll(() => done).toContain('start');
    stop.abort();
    await running;
    expect(done.slice(-2)).toEqual(['flush', 'close']);
    expect(done.slice(1, -2).sort()).toEqual(['stop', 'stopAgents']);
  });

  it('stops everything at once when its Lease is lost, and says so', async () => {
    const { joined, done, lease } = parts();
    const running = runOperator(joined, new AbortController().signal);
    await expect.poll(() => done).toContain('start');
    lease.abort(new Error('not renewed'));
    expect(await running).toBe('LeaseLost');
    expect(done).toContain('stopAgents');
  });

  it('gives the Lease back when its health port is taken, so that the process ends with the reason', async () => {
    const taken = createServer().listen(0);
    await once(taken, 'listening');
    // A TCP server that listens has an address with a port.
    const { port } = taken.address() as AddressInfo;
    const { joined, done } = parts();
    const running = runOperator({ ...joined, healthPort: port }, new AbortController().signal);
    await expect(running).rejects.toThrow(/--health-port/);
    expect(done).toContain('close');
    taken.close();
  });

  it('does not wait for ever for Events that an API server does not take', async () => {
    const { joined, done } = parts();
    const stop = new AbortController();
    const running = runOperator(
      { ...joined, events: { ...joined.events, flush: () => new Promise(() => undefined) } },
      stop.signal,
    );
    await expect.poll(() => done).toContain('start');
    stop.abort();
    await running;
    expect(done).toContain('close');
  }, 20_000);

  it('can be stopped while it waits for an API server that does not answer', async () => {
    const waiting = Promise.withResolvers<void>();
    const { joined, done } = parts({
      start: () => waiting.promise,
      stop: async () => waiting.reject(new Error('stopped before the sync')),
    });
    const stop = new AbortController();
    const running = runOperator(joined, stop.signal);
    stop.abort();
    await running;
    expect(done).toContain('close');
  });
});

describe('keepOperating', () => {
  it('joins again after a lost Lease, however often that fails at first, until it is asked to stop', async () => {
    const first = parts();
    const second = parts();
    const stop = new AbortController();
    const answers = [() => first.joined, refuse, refuse, () => second.joined];
    let asked = 0;
    const running = keepOperating(async () => (answers[asked++] ?? refuse)(), stop.signal, [1]);
    await expect.poll(() => first.done).toContain('start');
    first.lease.abort(new Error('not renewed'));
    await expect.poll(() => second.done).toContain('start');
    expect(first.done).toContain('close');
    expect(asked).toBe(4);
    stop.abort();
    await running;
    expect(second.done).toContain('close');
  });

  it('ends with the reason when it cannot join the first time', async () => {
    await expect(keepOperating(async () => refuse(), new AbortController().signal)).rejects.toThrow('away');
  });

  it('can be stopped while it waits to join again', async () => {
    const { joined, done, lease } = parts();
    const stop = new AbortController();
    let asked = 0;
    const running = keepOperating(async () => (asked++ === 0 ? joined : refuse()), stop.signal, [60_000]);
    await expect.poll(() => done).toContain('start');
    lease.abort(new Error('not renewed'));
    await expect.poll(() => asked).toBe(2);
    stop.abort();
    await running;
  });
});

function refuse(): never {
  throw new Error('the API server is away');
}

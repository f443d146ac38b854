import { describe, expect, it } from 'vitest';
import { ManualClock } from './clock.ts';
import { KubeError } from './errors.ts';
import { BusyError, exclusiveWork } from './exclusive.ts';
import type { Lease } from './kinds.ts';
import type { KubeClient, ObjectRef } from './port.ts';

/** The API server's Leases, and replicas that share them. */
function world() {
  const leases = new Map<string, Lease>();
  const dead = new Set<string>();
  const clock = new ManualClock();
  let version = 0;
  const refused = (reason: 'AlreadyExists' | 'Conflict') =>
    new KubeError({ reason, message: reason, where: 'lease' });
  const stored = (lease: Lease): Lease => {
    version += 1;
    const { name = '', uid = `u-${version}` } = lease.metadata;
    const after = { ...lease, metadata: { ...lease.metadata, uid, resourceVersion: String(version) } };
    leases.set(name, after);
    return after;
  };
  const client = {
    create: async (_: unknown, lease: Lease) => {
      if (leases.has(lease.metadata.name ?? '')) throw refused('AlreadyExists');
      return stored(lease);
    },
    get: async (_: unknown, { name }: ObjectRef) => leases.get(name),
    replace: async (_: unknown, lease: Lease) => {
      const before = leases.get(lease.metadata.name ?? '');
      if (before?.metadata.resourceVersion !== lease.metadata.resourceVersion) throw refused('Conflict');
      return stored(lease);
    },
    delete: async (_: unknown, { name }: ObjectRef, { uid }: { uid?: string }) =>
      leases.get(name)?.metadata.uid === uid && leases.delete(name),
  } as unknown as KubeClient; // the methods that are used
  const replica = (holder: string) =>
    exclusiveWork({ client, namespace: 'agents', holder, isAlive: async (one) => !dead.has(one), clock });
  return { leases, dead, clock, replica };
}

const { signal } = new AbortController();
/** Lets what is on its way get as far as it can. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 5));

describe('work under a key', () => {
  it('is done by one replica after the other, however many begin at once', async () => {
    const { clock, replica, leases } = world();
    const story: string[] = [];
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const doing = ['a', 'b'].map((name, index) =>
      replica(name)('note 1', signal, async () => {
        story.push(`${name} begins`);
        await gates[index]?.promise;
        story.push(`${name} ends`);
        return name;
      }),
    );
    await settle();
    expect(story).toEqual(['a begins']);
    gates[1]?.resolve();
    await clock.advance(1_000);
    await settle();
    expect(story).toEqual(['a begins']);
    gates[0]?.resolve();
    await settle();
    await clock.advance(1_000);
    expect(await Promise.all(doing)).toEqual(['a', 'b']);
    expect(story).toEqual(['a begins', 'a ends', 'b begins', 'b ends']);
    expect([...leases.keys()]).toEqual([]);
  });

  it('of another key goes on beside it', async () => {
    const { replica } = world();
    const gate = Promise.withResolvers<void>();
    const first = replica('a')('note 1', signal, () => gate.promise);
    expect(await replica('b')('note 2', signal, async () => 'done')).toBe('done');
    gate.resolve();
    await first;
  });

  it('that fails leaves the way free', async () => {
    const { replica } = world();
    await expect(replica('a')('k', signal, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await replica('b')('k', signal, async () => 'done')).toBe('done');
  });

  it('is taken over from a replica that is dead, at once', async () => {
    const { replica, dead } = world();
    void replica('a')('k', signal, () => new Promise(() => undefined));
    await settle();
    dead.add('a');
    expect(await replica('b')('k', signal, async () => 'done')).toBe('done');
  });

  it('is taken over by one of several', async () => {
    const { replica, dead, clock } = world();
    void replica('a')('k', signal, () => new Promise(() => undefined));
    await settle();
    dead.add('a');
    let atOnce = 0;
    const work = async () => {
      atOnce += 1;
      expect(atOnce).toBe(1);
      await settle();
      atOnce -= 1;
    };
    const both = Promise.all([replica('b')('k', signal, work), replica('c')('k', signal, work)]);
    await settle();
    await settle();
    await clock.advance(1_000);
    await both;
  });

  it('is taken over from a living replica when no work can take so long', async () => {
    const { replica, clock } = world();
    void replica('a')('k', signal, () => new Promise(() => undefined));
    await settle();
    await clock.advance(3 * 60_000);
    expect(await replica('b')('k', signal, async () => 'done')).toBe('done');
  });

  it('is given up for now when somebody else does not end', async () => {
    const { replica, clock } = world();
    void replica('a')('k', signal, () => new Promise(() => undefined));
    await settle();
    const second = replica('b')('k', signal, async () => 'done');
    const failed = expect(second).rejects.toThrow(BusyError);
    for (let seconds = 0; seconds < 22; seconds += 1) {
      await settle();
      await clock.advance(1_000);
    }
    await failed;
  });

  it('waits no longer than it is asked to', async () => {
    const { replica } = world();
    void replica('a')('k', signal, () => new Promise(() => undefined));
    await settle();
    const stop = new AbortController();
    const second = replica('b')('k', stop.signal, async () => 'done');
    const ended = expect(second).rejects.toThrow('enough');
    await settle();
    stop.abort(new Error('enough'));
    await ended;
  });
});

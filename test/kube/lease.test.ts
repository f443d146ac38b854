import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { createClient } from '../../src/kube/client.ts';
import { CONFIG_MAP, LEASE } from '../../src/kube/kinds.ts';
import { runLeaderElection } from '../../src/kube/lease/leader.ts';
import { holdReplicaLease, type ReplicaLeaseOptions } from '../../src/kube/lease/replica.ts';
import { joinLease } from '../../src/main/lease.ts';
import { type SeenRequest, startFaultProxy } from '../faults/proxy.ts';
import { type Api, eventually, sharedApi, transportTo } from './plane.ts';

let api: Api;
let namespace: string;

beforeAll(() => {
  api = sharedApi();
});
afterAll(async () => {
  await api?.close();
});
beforeEach(async () => {
  namespace = await api.namespace();
});

const isRenewal = ({ method, path }: SeenRequest) => method === 'PATCH' && path.includes('/leases/');

/** A way to the API server that can be broken. */
async function aBreakablePath() {
  const folder = mkdtempSync(join(tmpdir(), 'lease-'));
  const proxy = await startFaultProxy({ target: api.server, targetCa: api.ca });
  proxy.writeKubeconfig(join(folder, 'kubeconfig'), api.token);
  const transport = transportTo(join(folder, 'kubeconfig'));
  rmSync(folder, { recursive: true });
  onTestFinished(async () => {
    await transport.close();
    await proxy.close();
  });
  return {
    proxy,
    transport,
    client: createClient(transport),
    cut: () => {
      proxy.refuse(true);
      proxy.dropAll();
    },
    mend: () => proxy.refuse(false),
  };
}

describe('leader election', () => {
  const timing = { leaseDurationMs: 6_000, renewDeadlineMs: 4_000, renewMs: 300 };
  /** Lost by no pause of a busy machine, and longer than what is waited for in vain. */
  const long = { ...timing, leaseDurationMs: 90_000, renewDeadlineMs: 60_000 };
  /** When each identity led, by this machine's clock. */
  interface Reign {
    readonly identity: string;
    readonly from: number;
    to?: number;
  }

  function aCandidate(identity: string, reigns: Reign[], client = api.client, times = timing) {
    const abort = new AbortController();
    const ended = runLeaderElection({
      client,
      namespace,
      name: 'leader',
      identity,
      signal: abort.signal,
      ...times,
      async lead(signal) {
        const reign: Reign = { identity, from: performance.now() };
        reigns.push(reign);
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        reign.to = performance.now();
      },
    });
    const stop = async () => {
      abort.abort();
      await ended;
    };
    onTestFinished(stop);
    return { stop };
  }

  const expectNeverTwoAtOnce = (reigns: readonly Reign[]) => {
    const ordered = [...reigns].sort((a, b) => a.from - b.from);
    for (const [i, reign] of ordered.entries()) {
      const next = ordered[i + 1];
      if (next !== undefined) expect(reign.to ?? Number.POSITIVE_INFINITY).toBeLessThanOrEqual(next.from);
    }
  };

  test('one of several leads; when it ends, another does, without waiting for the lease to expire', async () => {
    const reigns: Reign[] = [];
    const candidates = new Map(['a', 'b', 'c'].map((id) => [id, aCandidate(id, reigns, api.client, long)]));
    await eventually('somebody leads', () => reigns.length === 1);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(reigns).toHaveLength(1);
    await candidates.get(reigns[0]!.identity)?.stop();
    // Its lease would last for longer than this waits.
    await eventually('another leads', () => reigns.length === 2);
    expectNeverTwoAtOnce(reigns);
  });

  test('a leader that is cut off stops before another begins', async () => {
    const reigns: Reign[] = [];
    const path = await aBreakablePath();
    aCandidate('cut-off', reigns, path.client);
    await eventually('it leads', () => reigns.length === 1);
    aCandidate('other', reigns);
    path.cut();
    await eventually('the other leads', () => reigns.some(({ identity }) => identity === 'other'));
    expectNeverTwoAtOnce(reigns);
    expect(reigns[0]?.to).toBeDefined();
  });

  test('a holder that died long ago is waited for by our own clock, then replaced and counted', async () => {
    await api.client.create(LEASE, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { namespace, name: 'leader' },
      // Its clock is an hour ahead: comparing wall clocks would wait for an hour.
      spec: {
        holderIdentity: 'dead',
        leaseDurationSeconds: 2,
        leaseTransitions: 4,
        renewTime: new Date(Date.now() + 3_600_000).toISOString().replace('Z', '000Z'),
      },
    });
    const reigns: Reign[] = [];
    const begun = performance.now();
    aCandidate('new', reigns);
    await eventually('it leads', () => reigns.length === 1);
    expect(performance.now() - begun).toBeGreaterThan(1_900);
    const lease = await api.client.get(LEASE, { namespace, name: 'leader' });
    expect(lease?.spec).toMatchObject({ holderIdentity: 'new', leaseTransitions: 5 });
    expect(lease?.spec?.renewTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  });
});

describe('a replica lease', () => {
  const timing = { leaseDurationMs: 6_000, renewMs: 500, renewDeadlineMs: 4_000 };

  async function aReplica(
    replica: string,
    parts: Partial<
      Pick<ReplicaLeaseOptions, 'client' | 'transport' | 'leaseDurationMs' | 'renewDeadlineMs'>
    > = {},
  ) {
    const lease = await holdReplicaLease({
      client: api.client,
      transport: api.transport,
      namespace,
      replica,
      ...timing,
      ...parts,
    });
    onTestFinished(() => lease.stop());
    return lease;
  }

  test('replicas see each other alive, and one that stops as dead without waiting for its lease', async () => {
    const long = { leaseDurationMs: 90_000, renewDeadlineMs: 60_000 };
    const a = await aReplica('a', long);
    const b = await aReplica('b', long);
    await eventually('they see each other', () => a.isAlive('b') && b.isAlive('a'));
    expect([a.isAlive('a'), a.isAlive('b'), b.isAlive('a'), a.isAlive('never-was')]).toEqual([
      true,
      true,
      true,
      false,
    ]);
    let told = 0;
    a.onChange(() => {
      told += 1;
    });
    await b.stop();
    await eventually('b is seen dead', () => !a.isAlive('b'));
    expect(told).toBeGreaterThan(0);
    expect(b.lost.aborted).toBe(true);
  });

  test('a replica that is cut off gives up before the others hold it dead, and it holds nobody dead', async () => {
    const path = await aBreakablePath();
    const cut = await aReplica('cut', path);
    const other = await aReplica('other');
    await eventually('they see each other', () => other.isAlive('cut') && cut.isAlive('other'));
    let gaveUpAt = 0;
    cut.lost.addEventListener('abort', () => {
      gaveUpAt = performance.now();
    });
    path.cut();
    await eventually('it is seen dead', () => !other.isAlive('cut'));
    const deadAt = performance.now();
    expect(gaveUpAt).toBeGreaterThan(0);
    expect(gaveUpAt).toBeLessThan(deadAt);
    expect(cut.isAlive('cut')).toBe(false);
    // What it last heard is all it knows: its own silence kills nobody.
    expect(cut.isAlive('other')).toBe(true);
  });

  test('a silent death is told without any event of the API server', async () => {
    const path = await aBreakablePath();
    await aReplica('cut', path);
    const other = await aReplica('other');
    await eventually('it is seen', () => other.isAlive('cut'));
    let told = 0;
    other.onChange(() => {
      if (!other.isAlive('cut')) told += 1;
    });
    path.cut();
    await eventually('it is told', () => told > 0);
  });

  test('a new process of the same replica is a new incarnation; the old one is dead for all and knows it', async () => {
    const first = await aReplica('a');
    const other = await aReplica('other');
    await eventually('it is seen', () => other.isAlive('a', first.incarnation));
    const second = await aReplica('a');
    expect(second.incarnation).toBe(first.incarnation + 1);
    await eventually('the old one knows', () => first.lost.aborted);
    await eventually(
      'the others know',
      () => !other.isAlive('a', first.incarnation) && other.isAlive('a', second.incarnation),
    );
    expect(second.isAlive('a', first.incarnation)).toBe(false);
  });

  test('incarnations go on upwards after the lease was deleted', async () => {
    const first = await aReplica('a');
    await first.stop();
    await api.client.delete(LEASE, { namespace, name: 'replica-a' });
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    expect((await aReplica('a')).incarnation).toBeGreaterThan(first.incarnation);
  });

  test('is kept on an API server that takes most of the deadline for each answer', async () => {
    const path = await aBreakablePath();
    path.proxy.rule({ match: isRenewal, fault: { kind: 'Delay', ms: 6_000 } });
    const { client, transport } = path;
    const patient = { client, transport, leaseDurationMs: 14_000, renewDeadlineMs: 10_000 };
    const slow = await aReplica('slow', patient);
    const other = await aReplica('other');
    await new Promise((resolve) => setTimeout(resolve, patient.leaseDurationMs));
    expect(slow.lost.aborted).toBe(false);
    expect(slow.isLate()).toBe(true);
    expect(other.isAlive('slow')).toBe(true);
    expect(await other.mayTakeOver('slow', slow.incarnation)).toBe(false);
  });

  test('is renewed over connections that nothing else uses', async () => {
    const path = await aBreakablePath();
    const lease = await joinLease({
      ...{ connection: path.transport.connection, namespace, replica: 'own-lane' },
      ...{ registry: new Registry(), log: pino({ level: 'silent' }) },
    });
    onTestFinished(() => lease.close());
    const held = path.proxy.rule({
      match: ({ path: where }) => where.endsWith('/configmaps'),
      fault: { kind: 'Hold' },
    });
    const others = Array.from({ length: 20 }, () => path.client.list(CONFIG_MAP, { namespace }));
    const renewals = () => path.proxy.seen.filter(isRenewal);
    await eventually('it is renewed meanwhile', () => renewals().length >= 3);
    held.remove();
    await Promise.all(others);
    const used = new Set(renewals().map(({ connection }) => connection));
    const byOthers = path.proxy.seen.filter(({ path: where }) => where.endsWith('/configmaps'));
    expect(byOthers.length).toBeGreaterThanOrEqual(20);
    expect(byOthers.filter(({ connection }) => used.has(connection))).toEqual([]);
  });

  test('that a replica holds again after a restart is believed by the others to take up its own runs', async () => {
    const first = await aReplica('a');
    const other = await aReplica('other');
    await eventually('it is seen', () => other.isAlive('a', first.incarnation));
    const second = await aReplica('a');
    await eventually('the restart is seen', () => other.isAlive('a', second.incarnation));
    expect(await second.mayTakeOver('a', first.incarnation)).toBe(true);
    expect(await second.mayTakeOver('a', second.incarnation)).toBe(false);
    expect(await other.mayTakeOver('a', first.incarnation)).toBe(false);
    await second.stop();
    await eventually('its runs are free', () => other.mayTakeOver('a', first.incarnation));
  });

  test('a label put on by hand does not end it', async () => {
    const a = await aReplica('a');
    await api.client.patch(
      LEASE,
      { namespace, name: 'replica-a' },
      { type: 'merge', body: { metadata: { labels: { by: 'hand' } } } },
    );
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect(a.lost.aborted).toBe(false);
  });
});

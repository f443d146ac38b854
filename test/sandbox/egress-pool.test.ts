import { afterAll, beforeAll, expect, it } from 'vitest';
import { isEgressProven } from '../../src/crds/egress.ts';
import { ANNOTATIONS } from '../../src/crds/meta.ts';
import { SANDBOX_POOLS } from '../../src/crds/sandbox-pool.ts';
import type { Pod } from '../../src/kube/kinds.ts';
import { isUsable } from '../../src/kube/pod-state.ts';
import type { ClaimResult } from '../../src/sandbox/port.ts';
import { type EgressWorld, egressWorld } from '../builders/egress.ts';
import { aPool, until } from '../builders/pool.ts';

let world: EgressWorld;
beforeAll(async () => {
  world = await egressWorld();
}, 600_000);
afterAll(() => world?.close());

const condition = async (name: string) =>
  (await world.pool(name))?.status?.conditions?.find(({ type }) => type === 'EgressBlocked');
const becomes = (name: string, status: string) =>
  until(
    `EgressBlocked of ${name} is ${status}`,
    async () => (await condition(name))?.status === status,
    240_000,
  );
const isProven = (pod: Pod) => isEgressProven(pod, new Date());

async function makePool(name: string, replicas: number, enabled = true): Promise<void> {
  const pool = aPool(name, world.namespace, { replicas });
  const spec = { ...pool.spec, egressProbe: { ...pool.spec.egressProbe, enabled } };
  await world.kube.create(SANDBOX_POOLS, { ...pool, spec });
}

/** One run for each pool, which asks again until it is served. */
function claim(pool: string): Promise<ClaimResult> {
  return world.claims.claim({
    ...{ runUid: `run-${pool}`, runName: pool, runNamespace: 'agents', workflow: 'w', epoch: 1 },
    pool: { namespace: world.namespace, name: pool },
    labels: {},
    reapBy: new Date(Date.now() + 600_000),
  });
}

it('a sandbox can be claimed 5 s after it is ready, not before: when it was shown three times to reach nothing', async () => {
  await makePool('fresh', 1);
  const ready = await until('a pod is ready', () => world.pods('fresh').find(isUsable), 240_000);
  const readyAt = Date.now();
  expect(isProven(ready)).toBe(false);
  expect(await claim('fresh')).toEqual({
    kind: 'Waiting',
    message: expect.stringMatching(/1 stand by whose isolation is not proven yet\); place 1 in line/),
  });
  expect((await world.pool('fresh'))?.status?.ready ?? 0).toBe(0);

  await until('it is proven', () => world.pods('fresh').some(isProven), 240_000);
  expect(Date.now() - readyAt).toBeGreaterThan(4_500);
  await becomes('fresh', 'True');
  await until('a run gets it', async () => (await claim('fresh')).kind === 'Claimed');
  const claimed = world.pods('fresh').find(({ metadata }) => metadata.uid === ready.metadata.uid);
  expect(claimed?.metadata.annotations?.[ANNOTATIONS.egressBlockedUntil]).toBeDefined();
}, 600_000);

it('when enforcement is gone the pool says so and hands nothing out; once it is back, what was open is replaced', async () => {
  await makePool('watched', 2);
  await until('both are proven', () => world.pods('watched').filter(isProven).length === 2, 240_000);
  const before = world.pods('watched').map(({ metadata }) => metadata.uid);

  await world.cluster.pauseFirewall();
  const stoppedAt = Date.now();
  try {
    await becomes('watched', 'False');
    console.info(`EgressBlocked is False ${Date.now() - stoppedAt} ms after the firewall was stopped`);
    expect(await condition('watched')).toMatchObject({
      reason: 'EgressOpen',
      message: expect.stringMatching(/^sandbox watched-\S+ is not isolated: .*; no sandbox is handed out$/),
    });
    await until('no proof is left', () => world.pods('watched').filter(isProven).length === 0);
    expect(await claim('watched')).toEqual({
      kind: 'Waiting',
      message: expect.stringMatching(/hands nothing out: sandbox watched-\S+ is not isolated/),
    });
  } finally {
    await world.cluster.resumeFirewall();
  }

  await becomes('watched', 'True');
  await until('a run gets a sandbox', async () => (await claim('watched')).kind === 'Claimed', 240_000);
  await until(
    'the one that was open is replaced',
    () => {
      const pods = world.pods('watched');
      const present = pods.map(({ metadata }) => metadata.uid);
      const marked = pods.some(
        ({ metadata }) => metadata.annotations?.[ANNOTATIONS.egressOpen] !== undefined,
      );
      return !marked && before.some((uid) => !present.includes(uid));
    },
    240_000,
  );
}, 600_000);

it('a pool without probe trusts its cluster, until the probe is enabled', async () => {
  await makePool('trusting', 1, false);
  await until('one can be claimed', async () => (await world.pool('trusting'))?.status?.ready === 1);
  expect(await condition('trusting')).toMatchObject({ status: 'Unknown', reason: 'ProbeDisabled' });
  const { namespace } = world;
  const enabledAt = Date.now();
  await world.kube.patch(
    SANDBOX_POOLS,
    { namespace, name: 'trusting' },
    { type: 'merge', body: { spec: { egressProbe: { enabled: true } } } },
  );
  await until('what stood by before has lost its leave', () => !world.pods('trusting').some(isProven));
  await becomes('trusting', 'True');
  const { conditions } = (await world.pool('trusting'))?.status ?? {};
  const saidAt = conditions?.find(({ type }) => type === 'EgressBlocked')?.lastTransitionTime ?? '';
  expect(Date.parse(saidAt) - enabledAt).toBeGreaterThan(4_500);
}, 600_000);

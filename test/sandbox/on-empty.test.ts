import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { podForRun } from '../../src/controllers/pool/manifests.ts';
import { ANNOTATIONS, LABELS } from '../../src/crds/meta.ts';
import { SANDBOX_POOLS } from '../../src/crds/sandbox-pool.ts';
import { systemClock } from '../../src/kube/clock.ts';
import { type ExecConnection, execConnection } from '../../src/kube/exec-connection.ts';
import { NETWORK_POLICY, POD, type Pod } from '../../src/kube/kinds.ts';
import { silentLogger } from '../../src/kube/log.ts';
import { podOpener } from '../../src/sandbox/pool/open-pod.ts';
import { type PodPoolOptions, podPool } from '../../src/sandbox/pool/pool.ts';
import type { ClaimResult, SandboxProvider, SandboxRequest } from '../../src/sandbox/port.ts';
import { recording } from '../builders/kube-access.ts';
import { aPool, type PoolWorld, poolWorld, until } from '../builders/pool.ts';
import { kubectl } from '../crds/kubectl.ts';

let world: PoolWorld;
let connection: ExecConnection;
beforeAll(async () => {
  world = await poolWorld();
  connection = execConnection(world.connection);
});
afterAll(() => world?.close());

const namespace = () => world.namespaces.sandboxes;

function aProvider(options: Partial<PodPoolOptions> = {}): SandboxProvider {
  return podPool({
    kube: world.kube,
    podOf: podForRun,
    openPod: podOpener({ connection, client: world.kube, logger: silentLogger }),
    ...options,
  });
}

function aRequest(pool: string, rest: Partial<SandboxRequest> = {}): SandboxRequest {
  const runUid = rest.runUid ?? crypto.randomUUID();
  return {
    runUid,
    runName: `run-${runUid.slice(0, 8)}`,
    runNamespace: world.namespaces.agents,
    workflow: 'analyze',
    pool: { namespace: namespace(), name: pool },
    epoch: 1,
    labels: {},
    reapBy: new Date(Date.now() + 600_000),
    ...rest,
  };
}

/** An empty pool that makes sandboxes for runs, once its NetworkPolicy is there. */
async function emptyPool(name: string, claim: object = {}): Promise<void> {
  const pool = aPool(name, namespace(), { replicas: 0, claim: { createOnEmpty: true, ...claim } });
  await world.kube.create(SANDBOX_POOLS, pool);
  await until('its network is shut', () => world.kube.get(NETWORK_POLICY, { namespace: namespace(), name }));
}

const claimed = (provider: SandboxProvider, request: SandboxRequest) =>
  until('a sandbox', async () => {
    const result = await provider.claim(request);
    if (result.kind === 'Unavailable') throw new Error(result.message);
    return result.kind === 'Claimed' && result.sandbox;
  });

const messageOf = (result: ClaimResult): string =>
  result.kind === 'Claimed' ? `claimed ${result.sandbox.ref.name}` : result.message;

const ownedBy = async ({ runUid }: SandboxRequest): Promise<readonly Pod[]> =>
  (
    await world.kube.list(POD, { namespace: namespace(), labelSelector: `${LABELS.run}=${runUid}` })
  ).items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);

/** The same pod for a node that does not exist. */
const nowhere = (pool: Parameters<typeof podForRun>[0]): Pod | undefined => {
  const pod = podForRun(pool);
  return pod && { ...pod, spec: { ...pod.spec, nodeSelector: { nowhere: 'true' } } };
};

describe('an empty pool with createOnEmpty', () => {
  it('makes a sandbox that is the run’s from its beginning, and that no ReplicaSet counts', async () => {
    await emptyPool('direct');
    const provider = aProvider();
    const request = aRequest('direct');
    expect(messageOf(await provider.claim(request))).toMatch(
      /direct is scaled to 0 replicas; place 1 in line; Pod direct-\w+ is being made for this run/,
    );
    const sandbox = await claimed(provider, request);
    await sandbox.start();
    expect(await sandbox.exec('echo works')).toMatchObject({ kind: 'Exited', exitCode: 0 });
    const [pod, ...others] = await ownedBy(request);
    expect(others).toEqual([]);
    expect(pod?.metadata.name).toBe(sandbox.ref.name);
    expect(pod?.metadata.ownerReferences).toBeUndefined();
    expect(pod?.metadata.labels).toMatchObject({ [LABELS.pool]: 'direct', [LABELS.role]: 'active' });
    expect(pod?.metadata.annotations).toMatchObject({
      [ANNOTATIONS.reapBy]: request.reapBy.toISOString(),
      [ANNOTATIONS.runName]: `${world.namespaces.agents}/${request.runName}`,
      [ANNOTATIONS.onEmpty]: 'true',
    });
    await until('the pool counts it as claimed', async () => {
      const status = (await world.pool('direct'))?.status;
      return status?.claimed === 1 && status.replicas === 0;
    });
    await until('it is released', () => provider.release(request.runUid, namespace()));
  });

  it('makes one for a run that asks in two processes, or again after a restart', async () => {
    const request = aRequest('direct');
    await Promise.all([aProvider().claim(request), aProvider().claim(request)]);
    const [one, two] = await Promise.all([claimed(aProvider(), request), claimed(aProvider(), request)]);
    expect(one.ref.name).toBe(two.ref.name);
    expect(await ownedBy(request)).toHaveLength(1);
    await until('it is released', () => aProvider().release(request.runUid, namespace()));
  });

  it('gives the run what stands by first, and drops the one that cannot start', async () => {
    await emptyPool('full');
    const provider = aProvider({ podOf: nowhere });
    const request = aRequest('full');
    await until(
      'one is being made',
      async () => (await provider.claim(request)) && (await ownedBy(request)).length === 1,
    );
    const [made] = await ownedBy(request);
    await kubectl(['scale', '-n', namespace(), 'sandboxpool/full', '--replicas=1']);
    const sandbox = await claimed(provider, request);
    expect(sandbox.ref.name).not.toBe(made?.metadata.name);
    expect((await ownedBy(request)).map(({ metadata }) => metadata.name)).toEqual([sandbox.ref.name]);
    await until('it is released', () => provider.release(request.runUid, namespace()));
  });

  it('says by what it was refused, and does not ask again at once', async () => {
    await emptyPool('refused');
    const quota = {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'none', namespace: namespace() },
      spec: { hard: { pods: '0' } },
    };
    await kubectl(['create', '-f', '-'], quota);
    try {
      await until('the quota counts', async () => {
        const hard = ['get', 'resourcequota/none', '-n', namespace(), '-o', 'jsonpath={.status.hard.pods}'];
        return (await kubectl(hard)) === '0';
      });
      const { kube, calls } = recording(world.kube);
      // No pause is over while the test looks.
      const provider = aProvider({ kube, clock: { ...systemClock, monotonicMs: () => 0 } });
      const request = aRequest('refused');
      const creations = () => calls.filter(({ verb }) => verb === 'create').length;
      for (let count = 0; count < 5; count += 1)
        expect(messageOf(await provider.claim(request))).toMatch(
          /place 1 in line; none could be made for this run: .*exceeded quota: none/,
        );
      expect(creations()).toBe(1);
    } finally {
      await kubectl(['delete', 'resourcequota/none', '-n', namespace()]);
    }
  });

  it('waits for the timeout of the claim all the same, which no restart begins anew', async () => {
    await emptyPool('late', { timeout: '30s' });
    const provider = aProvider({ podOf: nowhere });
    const request = aRequest('late');
    expect((await provider.claim(request)).kind).toBe('Waiting');
    const after = await aProvider().claim({ ...request, waitingSince: new Date(Date.now() - 31_000) });
    expect(after).toMatchObject({
      kind: 'Unavailable',
      message: expect.stringContaining('late became free within 30s'),
    });
    await until('what was being made is released', () => provider.release(request.runUid, namespace()));
  });
});

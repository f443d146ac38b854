import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ANNOTATIONS, LABELS, type ResourceKind } from '../../src/crds/meta.ts';
import { SANDBOX_POOLS } from '../../src/crds/sandbox-pool.ts';
import { type ExecConnection, execConnection } from '../../src/kube/exec-connection.ts';
import { DEPLOYMENT, NETWORK_POLICY, POD, type Pod, REPLICA_SET } from '../../src/kube/kinds.ts';
import { silentLogger } from '../../src/kube/log.ts';
import { podOpener } from '../../src/sandbox/pool/open-pod.ts';
import { type PodPoolOptions, podPool } from '../../src/sandbox/pool/pool.ts';
import type { ClaimResult, Sandbox, SandboxProvider, SandboxRequest } from '../../src/sandbox/port.ts';
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

/** A provider as one operator process has it. Its cache is the informer's unless the test gives another. */
function aProvider(options: Partial<PodPoolOptions> = {}): SandboxProvider {
  return podPool({
    kube: world.kube,
    cachedPods: () => world.pods.list(),
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
    labels: { [LABELS.managedBy]: 'hummingbird-operator', [LABELS.projectId]: '7' },
    reapBy: new Date(Date.now() + 600_000),
    ...rest,
  };
}

async function claimUntilGiven(
  provider: SandboxProvider,
  request: SandboxRequest,
  ms = 60_000,
): Promise<Sandbox> {
  const ask = async () => {
    const result = await provider.claim(request);
    if (result.kind === 'Unavailable') throw new Error(result.message);
    return result.kind === 'Claimed' && result.sandbox;
  };
  return until(`a sandbox for ${request.runName}`, ask, ms);
}

const nameOf = (result: ClaimResult): string => {
  if (result.kind !== 'Claimed') throw new Error(`${result.kind}: ${result.message}`);
  return result.sandbox.ref.name;
};

const readPod = (name: string) => world.kube.get(POD, { namespace: namespace(), name });
const activeOf = async (runUid: string): Promise<readonly Pod[]> =>
  (
    await world.kube.list(POD, { namespace: namespace(), labelSelector: `${LABELS.run}=${runUid}` })
  ).items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);

async function releaseAll(provider: SandboxProvider, ...requests: readonly SandboxRequest[]): Promise<void> {
  await Promise.all(
    requests.map(({ runUid }) => until('it is released', () => provider.release(runUid, namespace()))),
  );
}

describe('a claim', () => {
  beforeAll(() => world.filledPool('warm', 2));

  it('BR-39: is one list and one patch, which names the version it saw and changes labels and owner together', async () => {
    const { kube, calls } = recording(world.kube);
    const provider = aProvider({ kube });
    const request = aRequest('warm', { sessionId: 'session-1' });
    const name = nameOf(await provider.claim(request));
    expect(calls.map(({ verb, kind }) => `${verb} ${kind}`)).toEqual(['list Pod', 'patch Pod']);
    expect(calls[0]?.selector).toBe(`${LABELS.run}=${request.runUid}`);
    expect(calls[1]?.patch).toMatchObject({
      type: 'merge',
      body: {
        metadata: {
          uid: expect.any(String),
          resourceVersion: expect.any(String),
          labels: { [LABELS.role]: 'active', [LABELS.run]: request.runUid },
          ownerReferences: null,
        },
      },
    });
    const pod = await readPod(name);
    expect(pod?.metadata.ownerReferences).toBeUndefined();
    expect(pod?.metadata.labels).toMatchObject({
      [LABELS.pool]: 'warm',
      [LABELS.role]: 'active',
      [LABELS.run]: request.runUid,
      [LABELS.session]: 'session-1',
      [LABELS.workflow]: 'analyze',
      [LABELS.projectId]: '7',
    });
    expect(pod?.metadata.annotations).toMatchObject({
      [ANNOTATIONS.reapBy]: request.reapBy.toISOString(),
      [ANNOTATIONS.epoch]: '1',
      [ANNOTATIONS.runName]: `${world.namespaces.agents}/${request.runName}`,
    });
    await until('a replacement stands by', async () => {
      const status = (await world.pool('warm'))?.status;
      return status?.ready === 2 && status.claimed === 1;
    });
    expect((await readPod(name))?.metadata.labels?.[LABELS.role]).toBe('active');
    await releaseAll(provider, request);
  });

  it('gives a sandbox that runs commands', async () => {
    const provider = aProvider();
    const request = aRequest('warm');
    const sandbox = await claimUntilGiven(provider, request);
    await sandbox.start();
    const result = await sandbox.exec(
      'id -u; touch /denied; echo written > /tmp/data/file; cat /tmp/data/file',
    );
    expect(Buffer.from(result.stdout).toString()).toBe('65532\nwritten\n');
    expect(Buffer.from(result.stderr).toString()).toMatch(/[Rr]ead-only/);
    await sandbox.cleanup();
    await releaseAll(provider, request);
  });

  it('finds the pod that the run owns already, also in another process, and claims no second one', async () => {
    const request = aRequest('warm');
    const first = nameOf({ kind: 'Claimed', sandbox: await claimUntilGiven(aProvider(), request) });
    const { kube, calls } = recording(world.kube);
    expect(nameOf(await aProvider({ kube }).claim(request))).toBe(first);
    expect(calls.filter(({ verb }) => verb === 'patch')).toEqual([]);
    await releaseAll(aProvider(), request);
  });

  it('is found by another process without any write, and not any more once it goes', async () => {
    const request = aRequest('warm');
    const name = nameOf(await aProvider().claim(request));
    const { kube, calls } = recording(world.kube);
    const other = aProvider({ kube });
    const found = await other.find(request.runUid, namespace());
    expect(found?.ref.name).toBe(name);
    expect(await found?.exec('echo here')).toMatchObject({ kind: 'Exited', exitCode: 0 });
    expect(calls.map(({ verb, kind }) => `${verb} ${kind}`)).toEqual(['list Pod']);
    expect(await other.find(crypto.randomUUID(), namespace())).toBeUndefined();
    await aProvider().release(request.runUid, namespace());
    expect(await other.find(request.runUid, namespace())).toBeUndefined();
    await releaseAll(other, request);
  });

  it('of the next holder takes the pod over, and the holder before is refused', async () => {
    const request = aRequest('warm');
    const first = nameOf({ kind: 'Claimed', sandbox: await claimUntilGiven(aProvider(), request) });
    expect(nameOf(await aProvider().claim({ ...request, epoch: 2 }))).toBe(first);
    expect((await readPod(first))?.metadata.annotations?.[ANNOTATIONS.epoch]).toBe('2');
    await expect(aProvider().claim(request)).rejects.toThrow(/epoch 1 is over/);
    await releaseAll(aProvider(), request);
  });

  it('of the next holder ends the command that the holder before left running, and nothing else', async () => {
    const request = aRequest('warm');
    const before = await claimUntilGiven(aProvider(), request);
    await before.start();
    await before.exec('setsid sleep 3001 >/dev/null 2>&1 & echo a server of the run');
    const left = before.exec('sleep 3002 & sleep 3003', { timeoutMs: 600_000 });
    const text = async (sandbox: Sandbox, command: string) =>
      Buffer.from((await sandbox.exec(command)).stdout).toString();
    const sleeps = (sandbox: Sandbox) =>
      text(sandbox, 'ps -eo stat=,args= | grep "^[^Z].*[s]leep 300" | sort -k 2');
    await until('it runs', async () => (await sleeps(before)).includes('sleep 3003\n'));
    const claimed = await aProvider().claim({ ...request, epoch: 2 });
    if (claimed.kind !== 'Claimed') throw new Error(claimed.message);
    await claimed.sandbox.start();
    expect((await sleeps(claimed.sandbox)).match(/sleep 300\d/g)).toEqual(['sleep 3001']);
    expect(await left).toMatchObject({ kind: 'Exited', exitCode: 137 });
    await releaseAll(aProvider(), request);
  });

  it('never gives a pod that is going: after a release another one is claimed', async () => {
    const provider = aProvider();
    const request = aRequest('warm');
    const first = (await claimUntilGiven(provider, request)).ref.name;
    expect(await provider.release(request.runUid, namespace())).toBe(false);
    const second = (await claimUntilGiven(provider, request)).ref.name;
    expect(second).not.toBe(first);
    await releaseAll(provider, request);
    expect(await activeOf(request.runUid)).toEqual([]);
  });

  it('BR-43: leaves no owner reference into the namespace of the runs', async () => {
    const request = aRequest('warm');
    await claimUntilGiven(aProvider(), request);
    const kinds: readonly ResourceKind[] = [POD, DEPLOYMENT, REPLICA_SET, NETWORK_POLICY];
    for (const kind of kinds) {
      const { items } = await world.kube.list(kind, { namespace: namespace() });
      const owners = items.flatMap(({ metadata }) => metadata.ownerReferences ?? []);
      expect(
        owners.filter((owner) => !['SandboxPool', 'Deployment', 'ReplicaSet'].includes(owner.kind)),
      ).toEqual([]);
    }
    await releaseAll(aProvider(), request);
  });
});

describe('two at once', () => {
  beforeAll(() => world.filledPool('pair', 2));

  it.each([
    ['in one process', true],
    ['in two processes', false],
  ])(
    'BR-37: one run that claims twice %s, with a cache that lags, gets one pod',
    async (_name, oneProcess) => {
      await until('two stand by', async () => (await world.pool('pair'))?.status?.ready === 2);
      const before = world.pods.list(({ metadata }) => metadata.labels?.[LABELS.pool] === 'pair');
      const first = aProvider({ cachedPods: () => before });
      const second = oneProcess ? first : aProvider({ cachedPods: () => before });
      const request = aRequest('pair');
      const names = (await Promise.all([first.claim(request), second.claim(request)])).map(nameOf);
      expect(new Set(names).size).toBe(1);
      expect((await activeOf(request.runUid)).length).toBe(1);
      await releaseAll(first, request);
    },
  );

  it('BR-37: two runs and one pod: one gets it, the other waits and gets the replacement', async () => {
    await world.filledPool('single', 1);
    const before = world.pods.list(({ metadata }) => metadata.labels?.[LABELS.pool] === 'single');
    const providers = [
      aProvider({ cachedPods: () => before }),
      aProvider({ cachedPods: () => before }),
    ] as const;
    const requests = [aRequest('single'), aRequest('single')] as const;
    const results = await Promise.all([providers[0].claim(requests[0]), providers[1].claim(requests[1])]);
    expect(results.map(({ kind }) => kind).toSorted()).toEqual(['Claimed', 'Waiting']);
    const loser = results[0].kind === 'Waiting' ? 0 : 1;
    expect(results[loser]).toMatchObject({
      message: expect.stringMatching(/single is free; place 1 in line/),
    });
    const given = await claimUntilGiven(providers[loser], requests[loser]);
    expect(given.ref.name).not.toBe(nameOf(loser === 0 ? results[1] : results[0]));
    await releaseAll(providers[0], ...requests);
  });

  it('twenty runs over four pods in two processes never share one, and all are served', async () => {
    await world.filledPool('crowd', 4);
    const providers = [aProvider(), aProvider()] as const;
    const requests = Array.from({ length: 20 }, () => aRequest('crowd'));
    const given = await Promise.all(
      requests.map(
        async (request, at) =>
          (await claimUntilGiven(providers[at % 2 === 0 ? 0 : 1], request, 200_000)).ref.name,
      ),
    );
    expect(new Set(given).size).toBe(20);
    for (const [at, request] of requests.entries()) {
      expect((await activeOf(request.runUid)).map(({ metadata }) => metadata.name)).toEqual([given[at]]);
    }
    await kubectl(['delete', 'sandboxpool/crowd', '-n', namespace(), '--wait=false']);
    await releaseAll(providers[0], ...requests);
    // Twenty-four pods start one after another on one node.
  }, 300_000);
});

describe('when nothing is free', () => {
  it('BR-39: a pod that changed since the cache saw it is refused with 409 and not forced', async () => {
    await world.filledPool('stale', 1);
    const before = world.pods.list(({ metadata }) => metadata.labels?.[LABELS.pool] === 'stale');
    const name = before[0]?.metadata.name ?? '';
    // Taken by somebody else behind the cache's back.
    await kubectl([
      'label',
      `pod/${name}`,
      '-n',
      namespace(),
      '--overwrite',
      'hummingbird/role=active',
      'hummingbird.dev/run=other',
    ]);
    const request = aRequest('stale');
    const given = await claimUntilGiven(aProvider({ cachedPods: () => before }), request);
    expect(given.ref.name).not.toBe(name);
    expect((await readPod(name))?.metadata.labels?.[LABELS.run]).toBe('other');
    await releaseAll(aProvider(), request, aRequest('stale', { runUid: 'other' }));
  });

  it('BR-38: pods that are not ready are waited for, and nothing is patched', async () => {
    await world.kube.create(
      SANDBOX_POOLS,
      aPool('unready', namespace(), { replicas: 1, image: 'localhost:1/none:1' }),
    );
    await until('its pod is there', async () => (await world.pool('unready'))?.status?.replicas === 1);
    const { kube, calls } = recording(world.kube);
    const result = await aProvider({ kube, pullPatienceMs: 600_000 }).claim(aRequest('unready'));
    expect(result).toMatchObject({ kind: 'Waiting' });
    expect(calls.filter(({ verb }) => verb === 'patch')).toEqual([]);
  });

  it('an image that cannot be pulled ends the wait, with the reason', async () => {
    const provider = aProvider({ pullPatienceMs: 1_000 });
    const request = aRequest('unready');
    const result = await until('it is given up', async () => {
      const answer = await provider.claim(request);
      return answer.kind === 'Unavailable' && answer;
    });
    expect(result.message).toMatch(/unready can start: (ErrImagePull|ImagePullBackOff): .*localhost:1/);
  });

  it('a pool that does not exist is unavailable at once', async () => {
    expect(await aProvider().claim(aRequest('nowhere'))).toMatchObject({
      kind: 'Unavailable',
      message: expect.stringContaining('nowhere does not exist'),
    });
  });

  it('a claim timeout ends the wait', async () => {
    await world.kube.create(
      SANDBOX_POOLS,
      aPool('brief', namespace(), { replicas: 0, claim: { timeout: '1s' } }),
    );
    const provider = aProvider();
    const request = aRequest('brief');
    expect(await provider.claim(request)).toMatchObject({
      kind: 'Waiting',
      message: expect.stringContaining('0 replicas'),
    });
    await until('it is given up', async () => (await provider.claim(request)).kind === 'Unavailable');
  });

  it('runs that wait ask the API server together', async () => {
    const { kube, calls } = recording(world.kube);
    const provider = aProvider({ kube });
    await world.kube.create(SANDBOX_POOLS, aPool('empty', namespace(), { replicas: 0 }));
    const requests = Array.from({ length: 10 }, () => aRequest('empty'));
    for (const request of requests) await provider.claim(request);
    const joined = calls.length;
    await Promise.all(requests.map((request) => provider.claim(request)));
    expect(calls.length - joined).toBeLessThanOrEqual(2);
  });
});

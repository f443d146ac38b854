import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ANNOTATIONS, LABELS } from '../../src/crds/meta.ts';
import { SANDBOX_POOLS } from '../../src/crds/sandbox-pool.ts';
import { type ExecConnection, execConnection } from '../../src/kube/exec-connection.ts';
import { POD, type Pod } from '../../src/kube/kinds.ts';
import { silentLogger } from '../../src/kube/log.ts';
import { podOpener } from '../../src/sandbox/pool/open-pod.ts';
import { type PodPoolOptions, podPool } from '../../src/sandbox/pool/pool.ts';
import type { Sandbox, SandboxProvider, SandboxRequest } from '../../src/sandbox/port.ts';
import { recording } from '../builders/kube-access.ts';
import { aPool, type PoolWorld, poolWorld, until } from '../builders/pool.ts';

let world: PoolWorld;
let connection: ExecConnection;
beforeAll(async () => {
  world = await poolWorld();
  connection = execConnection(world.connection);
  await world.filledPool('warm', 3);
});
afterAll(() => world?.close());

const namespace = () => world.namespaces.sandboxes;

function aProvider(options: Partial<PodPoolOptions> = {}): SandboxProvider {
  return podPool({
    kube: world.kube,
    openPod: podOpener({ connection, client: world.kube, logger: silentLogger }),
    ...options,
  });
}

function aRequest(rest: Partial<SandboxRequest> = {}): SandboxRequest {
  const runUid = rest.runUid ?? crypto.randomUUID();
  return {
    runUid,
    runName: `run-${runUid.slice(0, 8)}`,
    runNamespace: world.namespaces.agents,
    workflow: 'analyze',
    sessionId: runUid,
    pool: { namespace: namespace(), name: 'warm' },
    epoch: 1,
    labels: {},
    reapBy: new Date(Date.now() + 600_000),
    ...rest,
  };
}

const next = (first: SandboxRequest): SandboxRequest =>
  aRequest({ sessionId: first.sessionId ?? '', savedBy: first.runUid, pool: first.pool });

async function claimed(provider: SandboxProvider, request: SandboxRequest) {
  return until(`a sandbox for ${request.runName}`, async () => {
    const result = await provider.claim(request);
    if (result.kind === 'Unavailable') throw new Error(result.message);
    return result.kind === 'Claimed' && result;
  });
}

const lingerOf = ({ runUid, runNamespace, sessionId = '', pool }: SandboxRequest) => ({
  ...{ runUid, runNamespace, sessionId },
  namespace: pool.namespace,
});

/** A run that has ended well: its sandbox holds a file, and lingers. */
async function lingering(request = aRequest()): Promise<{ request: SandboxRequest; name: string }> {
  const provider = aProvider();
  const { sandbox } = await claimed(provider, request);
  await sandbox.start();
  await sandbox.exec('echo kept > /tmp/data/file');
  expect((await provider.linger(lingerOf(request))).kind).toBe('Lingers');
  return { request, name: sandbox.ref.name };
}

const readPod = (name: string) => world.kube.get(POD, { namespace: namespace(), name });
const isGone = (pod: Pod | undefined) => pod === undefined || pod.metadata.deletionTimestamp !== undefined;
const textOf = async (sandbox: Sandbox) => {
  const result = await sandbox.exec('cat /tmp/data/file');
  return Buffer.from(result.stdout).toString();
};

describe('a sandbox whose run ended well', () => {
  it('lingers by one guarded patch: it is the run’s no more, and its deadline is the pool’s linger.duration away', async () => {
    const { kube, calls } = recording(world.kube);
    const provider = aProvider({ kube });
    const request = aRequest();
    const { sandbox } = await claimed(provider, request);
    calls.length = 0;
    const before = Date.now();
    const result = await provider.linger(lingerOf(request));
    if (result.kind !== 'Lingers') throw new Error(result.message);
    expect(result.ref).toEqual(sandbox.ref);
    expect(result.until.getTime() - before).toBeGreaterThanOrEqual(300_000);
    expect(result.until.getTime() - before).toBeLessThan(360_000);
    const patches = calls.filter(({ verb }) => verb === 'patch');
    expect(patches).toMatchObject([
      { patch: { body: { metadata: { resourceVersion: expect.any(String), uid: expect.any(String) } } } },
    ]);
    const pod = await readPod(sandbox.ref.name);
    expect(pod?.metadata.labels).toMatchObject({ [LABELS.role]: 'active', [LABELS.session]: request.runUid });
    expect(pod?.metadata.labels).not.toHaveProperty(LABELS.run);
    expect(pod?.metadata.annotations).toMatchObject({
      [ANNOTATIONS.sessionId]: request.sessionId,
      [ANNOTATIONS.reapBy]: result.until.toISOString(),
    });
    expect(await provider.find(request.runUid, namespace())).toBeUndefined();
    expect(await provider.release(request.runUid, namespace())).toBe(true);
    expect(isGone(await readPod(sandbox.ref.name))).toBe(false);
    // Said again, after a restart, it is the same one until the same time.
    expect(await aProvider().linger(lingerOf(request))).toEqual(result);
    await until('the pool counts it', async () => (await world.pool('warm'))?.status?.lingering === 1);
    await world.kube.delete(POD, { namespace: namespace(), name: sandbox.ref.name });
  });

  it('is what the session’s next run gets, with its files, and keeps through a restart', async () => {
    const { request: first, name } = await lingering();
    const second = next(first);
    const result = await claimed(aProvider(), second);
    expect(result).toMatchObject({ reclaimed: true, sandbox: { ref: { name } } });
    expect(await textOf(result.sandbox)).toBe('kept\n');
    const pod = await readPod(name);
    expect(pod?.metadata.labels?.[LABELS.run]).toBe(second.runUid);
    expect(pod?.metadata.annotations).toMatchObject({
      [ANNOTATIONS.reapBy]: second.reapBy.toISOString(),
      [ANNOTATIONS.epoch]: '1',
    });
    expect(pod?.metadata.annotations).not.toHaveProperty(ANNOTATIONS.sessionId);
    expect(await claimed(aProvider(), second)).toMatchObject({ reclaimed: true, sandbox: { ref: { name } } });
    await aProvider().release(second.runUid, namespace());
  });

  it('is got by one of two that try at once; the other has a fresh one', async () => {
    const { request: first, name } = await lingering();
    const [one, two] = [next(first), next(first)];
    const results = await Promise.all([claimed(aProvider(), one), claimed(aProvider(), two)]);
    expect(results.filter(({ reclaimed }) => reclaimed === true)).toHaveLength(1);
    expect(new Set(results.map(({ sandbox }) => sandbox.ref.name)).size).toBe(2);
    expect(results.map(({ sandbox }) => sandbox.ref.name)).toContain(name);
    for (const { runUid } of [one, two]) await aProvider().release(runUid, namespace());
  });

  it('is never handed to another session, nor to one that goes on from another save', async () => {
    const { request: first, name } = await lingering();
    const others = [
      aRequest(),
      aRequest({ savedBy: first.runUid }),
      { ...next(first), savedBy: crypto.randomUUID() },
      { ...next(first), runNamespace: 'elsewhere' },
    ];
    for (const request of others) {
      const result = await claimed(aProvider(), request);
      expect(result.reclaimed).toBeUndefined();
      expect(result.sandbox.ref.name).not.toBe(name);
      await aProvider().release(request.runUid, namespace());
    }
    expect(isGone(await readPod(name))).toBe(false);
    await world.kube.delete(POD, { namespace: namespace(), name });
  });

  it('that died meanwhile is replaced by a fresh one', async () => {
    const { request: first, name } = await lingering();
    await world.kube.delete(POD, { namespace: namespace(), name });
    const second = next(first);
    const result = await claimed(aProvider(), second);
    expect(result.reclaimed).toBeUndefined();
    expect(result.sandbox.ref.name).not.toBe(name);
    await aProvider().release(second.runUid, namespace());
  });

  it('takes the place of the one that lingers with an older save', async () => {
    const { request: first, name } = await lingering();
    // This run of the session missed the sandbox, and leaves another one.
    const second = aRequest({ sessionId: first.sessionId ?? '' });
    const { name: newer } = await lingering(second);
    expect(newer).not.toBe(name);
    await until('the older one goes', async () => isGone(await readPod(name)));
    expect(await claimed(aProvider(), { ...next(second), sessionId: first.sessionId ?? '' })).toMatchObject({
      reclaimed: true,
      sandbox: { ref: { name: newer } },
    });
    await world.kube.delete(POD, { namespace: namespace(), name: newer });
  });

  it.each([
    ['linger.duration 0s', { duration: '0s', max: 2 }],
    ['linger.max 0', { duration: '5m', max: 0 }],
  ])('is not kept by a pool with %s', async (what, linger) => {
    const name = `off-${what.replace(/\W/g, '')}`.toLowerCase();
    await world.kube.create(SANDBOX_POOLS, aPool(name, namespace(), { replicas: 1, linger }));
    const request = aRequest({ pool: { namespace: namespace(), name } });
    const { sandbox } = await claimed(aProvider(), request);
    expect(await aProvider().linger(lingerOf(request))).toMatchObject({
      kind: 'NotKept',
      message: expect.stringContaining(what),
    });
    await sandbox.linger(request.runUid);
    await until('it is deleted instead', async () => isGone(await readPod(sandbox.ref.name)));
    await world.kube.delete(SANDBOX_POOLS, { namespace: namespace(), name });
  });
});

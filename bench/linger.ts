import { randomUUID } from 'node:crypto';
import type { Cluster } from '../hack/cluster/cluster.ts';
import type { Namespaces } from '../hack/operator/install.ts';
import { archiveSandbox } from '../src/agent/archive.ts';
import { loadEarlierSession, restoreFiles } from '../src/agent/earlier-session.ts';
import { saveSession } from '../src/agent/session.ts';
import { createClient } from '../src/kube/client.ts';
import { connect } from '../src/kube/config.ts';
import { execConnection } from '../src/kube/exec-connection.ts';
import { createInformer } from '../src/kube/informer.ts';
import { POD } from '../src/kube/kinds.ts';
import { silentLogger } from '../src/kube/log.ts';
import { createTransport } from '../src/kube/transport.ts';
import { podOpener } from '../src/sandbox/pool/open-pod.ts';
import { podPool } from '../src/sandbox/pool/pool.ts';
import type { Sandbox, SandboxProvider, SandboxRequest } from '../src/sandbox/port.ts';
import type { ObjectStore } from '../src/store/port.ts';
import { createS3Store } from '../src/store/s3.ts';
import { anEnvelope } from '../test/builders/session.ts';
import { startS3 } from '../test/fakes/s3/server.ts';
import { aWorld } from '../test/operator/world.ts';
import { median, type Rows, rounded } from './row.ts';

const ROUNDS = 7;
const MEGABYTES = 50;
const POOL = 3;

/**
 * What a reply waits for until its sandbox holds the session's 50 MB: the sandbox that lingered, taken back, against a
 * warm one and the archive out of S3, in turn. The bytes are random, so that the archive is as large.
 */
export async function lingerBench(cluster: Cluster): Promise<Rows> {
  const world = await aWorld(cluster, {
    replicas: POOL,
    scripts: { 'bench-script': () => ({ text: 'unused' }) },
    poolSpec: { linger: { duration: '30m', max: 1 } },
  });
  const s3 = await startS3('bench');
  const store = createS3Store({ ...S3, endpoint: s3.endpoint });
  const connection = connect({ kind: 'Files', paths: [cluster.kubeconfigPath] });
  const transport = createTransport(connection);
  const kube = createClient(transport);
  const pods = createInformer({ transport, kind: POD, namespace: world.namespaces.sandboxes });
  pods.start();
  try {
    await world.operator.waitReady();
    await pods.waitForSync();
    const exec = execConnection(connection);
    const provider = podPool({
      kube,
      cachedPods: () => pods.list(),
      openPod: podOpener({ connection: exec, client: kube, logger: silentLogger }),
    });
    const reclaims: number[] = [];
    const restores: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const { first, sessionId } = await savedSession(provider, store, world.namespaces);
      restores.push(await oneRestore(provider, store, world.namespaces, sessionId));
      reclaims.push(await oneReclaim(provider, { ...aRequest(world.namespaces), sessionId, savedBy: first }));
    }
    const restore = median(restores);
    return {
      'linger.ratio': {
        value: rounded(median(reclaims) / restore),
        goal: 0.1,
        better: 'lower',
        unit: `x restore of ${MEGABYTES} MB`,
        runs: ROUNDS,
        note: `reclaim ${rounded(median(reclaims))} ms, restore ${rounded(restore)} ms`,
      },
    };
  } finally {
    await pods.stop();
    await transport.close();
    store.close();
    await s3.stop();
    await world.close();
  }
}

/** The stand-in asks for no credentials that mean anything. */
const S3 = {
  ...{ bucket: 'bench', region: 'us-east-1', pathStyle: true },
  credentials: { accessKeyId: 'bench', secretAccessKey: 'bench' },
} as const;

/** A run that has ended well: 50 MB in the store, and a sandbox that lingers with them. */
async function savedSession(
  provider: SandboxProvider,
  store: ObjectStore,
  namespaces: Namespaces,
): Promise<{ readonly first: string; readonly sessionId: string }> {
  const request = aRequest(namespaces);
  const { runUid: first } = request;
  const sandbox = await claimed(provider, request);
  await sandbox.start();
  const made = await sandbox.exec(`head -c ${MEGABYTES}000000 /dev/urandom > /tmp/data/bytes`);
  if (made.kind !== 'Exited' || made.exitCode !== 0) throw new Error('bench: no bytes in the sandbox');
  await saveSession(store, {
    envelope: anEnvelope({ session_id: first, run: first }),
    transcript: '',
    archive: (to, key) => archiveSandbox(sandbox, to, key),
  });
  const kept = await provider.linger({
    ...{ runUid: first, runNamespace: '', sessionId: first },
    namespace: namespaces.sandboxes,
  });
  if (kept.kind !== 'Lingers') throw new Error(`bench: ${kept.message}`);
  return { first, sessionId: first };
}

async function oneReclaim(provider: SandboxProvider, request: SandboxRequest): Promise<number> {
  const before = performance.now();
  const result = await provider.claim(request);
  if (result.kind !== 'Claimed' || result.reclaimed !== true) throw new Error('bench: nothing lingered');
  await result.sandbox.start();
  const took = performance.now() - before;
  await released(provider, request);
  return took;
}

async function oneRestore(
  provider: SandboxProvider,
  store: ObjectStore,
  namespaces: Namespaces,
  sessionId: string,
): Promise<number> {
  const request = aRequest(namespaces);
  const earlier = await loadEarlierSession(store, sessionId);
  if (earlier === undefined) throw new Error('bench: no session was saved');
  // A warm one must stand by: waiting for it is another figure.
  for (;;) {
    const before = performance.now();
    const result = await provider.claim(request);
    if (result.kind !== 'Claimed') {
      await pause(100);
      continue;
    }
    await result.sandbox.start();
    const { problem } = await restoreFiles(store, earlier, result.sandbox, new AbortController().signal);
    const took = performance.now() - before;
    if (problem !== undefined) throw new Error(`bench: ${problem}`);
    await released(provider, request);
    return took;
  }
}

const aRequest = ({ sandboxes }: Namespaces): SandboxRequest => ({
  // No AgentRun stands behind it: with a namespace the reaper would look for one.
  ...{ runUid: randomUUID(), runName: 'bench', runNamespace: '', workflow: 'analyze-failures' },
  pool: { namespace: sandboxes, name: 'analysis' },
  epoch: 1,
  labels: {},
  reapBy: new Date(Date.now() + 600_000),
});

async function claimed(provider: SandboxProvider, request: SandboxRequest): Promise<Sandbox> {
  for (;;) {
    const result = await provider.claim(request);
    if (result.kind === 'Claimed') return result.sandbox;
    await pause(100);
  }
}

async function released(provider: SandboxProvider, { runUid, pool }: SandboxRequest): Promise<void> {
  while (!(await provider.release(runUid, pool.namespace))) await pause(50);
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

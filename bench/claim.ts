import { randomUUID } from 'node:crypto';
import type { Cluster } from '../hack/cluster/cluster.ts';
import type { Namespaces } from '../hack/operator/install.ts';
import { createClient } from '../src/kube/client.ts';
import { connect } from '../src/kube/config.ts';
import { createInformer, type Informer } from '../src/kube/informer.ts';
import { DEPLOYMENT, POD, type Pod } from '../src/kube/kinds.ts';
import { isUsable } from '../src/kube/pod-state.ts';
import type { KubeClient } from '../src/kube/port.ts';
import { createTransport } from '../src/kube/transport.ts';
import { podPool } from '../src/sandbox/pool/pool.ts';
import type { Sandbox, SandboxProvider } from '../src/sandbox/port.ts';
import { aWorld } from '../test/operator/world.ts';
import { percentile, type Rows, rounded } from './row.ts';

const CLAIMS = 30;
const COLD_STARTS = 15;
const POOL = 3;

/** A warm pod's claim, as a run makes it, against the start of the same pod from nothing, in turn. */
export async function claimBench(cluster: Cluster): Promise<Rows> {
  const world = await aWorld(cluster, {
    replicas: POOL,
    scripts: { 'bench-script': () => ({ text: 'unused' }) },
  });
  const transport = createTransport(connect({ kind: 'Files', paths: [cluster.kubeconfigPath] }));
  const kube = createClient(transport);
  const pods = createInformer({ transport, kind: POD, namespace: world.namespaces.sandboxes });
  pods.start();
  try {
    await world.operator.waitReady();
    await pods.waitForSync();
    const provider = podPool({ kube, cachedPods: () => pods.list(), openPod: () => NO_SANDBOX });
    const claims: number[] = [];
    const colds: number[] = [];
    for (let count = 0; count < CLAIMS; count += 1) {
      await until(() => pods.list(isFree).length === POOL);
      claims.push(await oneClaim(provider, world.namespaces));
      if (count % 2 === 0 && colds.length < COLD_STARTS)
        colds.push(await oneColdStart(cluster, kube, pods, world.namespaces, count));
    }
    const cold = percentile(colds, 0.5);
    const row = { better: 'lower', runs: CLAIMS } as const;
    return {
      'claim.ratio': {
        ...row,
        value: rounded(percentile(claims, 0.5) / cold),
        goal: 0.1,
        unit: 'x cold pod start',
        note: `cold p50 ${rounded(cold)} ms over ${colds.length}`,
      },
      'claim.p50ms': {
        ...row,
        value: rounded(percentile(claims, 0.5)),
        goal: rounded(cold / 10),
        unit: 'ms',
      },
      'claim.p95ms': { ...row, value: rounded(percentile(claims, 0.95)), goal: 56, unit: 'ms' },
    };
  } finally {
    await pods.stop();
    await transport.close();
    await world.close();
  }
}

async function oneClaim(provider: SandboxProvider, { agents, sandboxes }: Namespaces): Promise<number> {
  const runUid = randomUUID();
  const before = performance.now();
  const claimed = await provider.claim({
    runUid,
    runName: 'bench',
    runNamespace: agents,
    workflow: 'analyze-failures',
    pool: { namespace: sandboxes, name: 'analysis' },
    epoch: 1,
    labels: {},
    reapBy: new Date(Date.now() + 600_000),
  });
  const took = performance.now() - before;
  if (claimed.kind !== 'Claimed') throw new Error(`no pod was free: ${claimed.message}`);
  while (!(await provider.release(runUid, sandboxes))) await pause(50);
  return took;
}

/** From the create call until a watch shows the pod Ready, which is how any client would wait. */
async function oneColdStart(
  cluster: Cluster,
  kube: KubeClient,
  pods: Informer<Pod>,
  { sandboxes }: Namespaces,
  count: number,
): Promise<number> {
  const name = `cold-${count}`;
  const ready = Promise.withResolvers<void>();
  const unsubscribe = pods.subscribe(({ object }) => {
    if (object.metadata.name === name && isUsable(object)) ready.resolve();
  });
  const pool = await kube.get(DEPLOYMENT, { namespace: sandboxes, name: 'analysis' });
  if (pool === undefined) throw new Error('bench: the pool has no Deployment');
  const metadata = { name, namespace: sandboxes };
  const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: pool.spec.template.spec };
  const before = performance.now();
  await kube.create(POD, pod);
  await ready.promise;
  const took = performance.now() - before;
  unsubscribe();
  await cluster.kubectl(['delete', 'pod', name, '-n', sandboxes, '--grace-period=0', '--force']);
  return took;
}

const isFree = (pod: Pod): boolean =>
  pod.metadata.labels?.['hummingbird/role'] === 'standby' && isUsable(pod);

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await pause(50);
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The claim is what is measured; nothing is run in the pod. */
const NO_SANDBOX: Sandbox = {
  ref: { kind: 'PodPool', name: 'unused' },
  start: async () => {},
  exec: () => Promise.reject(new Error('not used')),
  writeFile: () => Promise.reject(new Error('not used')),
  streamToFile: () => Promise.reject(new Error('not used')),
  streamExec: () => Promise.reject(new Error('not used')),
  readFile: () => {
    throw new Error('not used');
  },
  cleanup: async () => {},
  linger: async () => {},
};

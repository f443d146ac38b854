import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import type { Cluster } from '../hack/cluster/cluster.ts';
import { apply } from '../hack/operator/install.ts';
import { createClient } from '../src/kube/client.ts';
import { connect } from '../src/kube/config.ts';
import { sshKeyPair } from '../src/kube/kubevirt/ssh-key.ts';
import { silentLogger } from '../src/kube/log.ts';
import type { KubeClient } from '../src/kube/port.ts';
import { createTransport } from '../src/kube/transport.ts';
import { type MachinePool, machinePool } from '../src/sandbox/pool/vmi-pool.ts';
import type { Sandbox, SandboxRequest } from '../src/sandbox/port.ts';
import { openOwnMachine } from '../src/sandbox/vm/own.ts';
import { startKubeVirt } from '../test/fakes/kubevirt/stand-in.ts';
import { aWorld, type World } from '../test/operator/world.ts';
import type { Backend } from './backends.ts';
import { percentile, type Rows, rounded } from './row.ts';

const MACHINE = { containerDisk: 'registry.test/sandbox-vm:1', cpuCores: 1, memory: '512Mi' };
const POOL_SIZE = 2;
const CLAIMS = 15;

/** A machine of its own: an sshd of the stand-in, not a hypervisor. */
export const VM: Backend = {
  name: 'vm',
  goals: { execMs: 60, inMbs: 80, outMbs: 80 },
  async open(cluster) {
    const bench = await machineBench(await cluster(), 0);
    return { sandbox: await bench.own(), close: bench.close };
  },
};

/** The same, claimed from a pool. */
export const VMPOOL: Backend = {
  name: 'vmpool',
  goals: VM.goals,
  async open(cluster) {
    const bench = await machineBench(await cluster(), 1);
    const { sandbox } = await bench.claim();
    return { sandbox, close: bench.close };
  },
};

/**
 * From the claim of a warm machine to its first command, with a connection of its own, against a machine that is made
 * and booted for the run; in turn. The guest of the stand-in boots in no time: a real one makes the ratio smaller.
 */
export async function machineClaimBench(cluster: Cluster): Promise<Rows> {
  const bench = await machineBench(cluster, POOL_SIZE);
  try {
    const [claims, firsts, boots]: [number[], number[], number[]] = [[], [], []];
    for (let count = 0; count < CLAIMS; count += 1) {
      const { runUid, claimMs, firstMs } = await bench.claim();
      claims.push(claimMs);
      firsts.push(firstMs);
      await bench.release(runUid);
      const before = performance.now();
      const own = await bench.own();
      boots.push(performance.now() - before);
      await own.cleanup();
    }
    const p50 = (times: readonly number[]) => rounded(percentile(times, 0.5));
    return {
      'vmclaim.ratio': {
        value: rounded(percentile(firsts, 0.5) / percentile(boots, 0.5)),
        goal: 0.5,
        better: 'lower',
        unit: 'x machine boot',
        runs: CLAIMS,
        note: `claim p50 ${p50(claims)} ms, with the first command ${p50(firsts)} ms; boot of the stand-in ${p50(boots)} ms`,
      },
    };
  } finally {
    await bench.close();
  }
}

interface MachineBench {
  readonly world: World;
  own(): Promise<Sandbox>;
  claim(): Promise<{ sandbox: Sandbox; runUid: string; claimMs: number; firstMs: number }>;
  release(runUid: string): Promise<void>;
  close(): Promise<void>;
}

async function machineBench(cluster: Cluster, replicas: number): Promise<MachineBench> {
  const world = await aWorld(cluster, {
    replicas: 0,
    scripts: { 'bench-script': () => ({ text: 'unused' }) },
  });
  const transport = createTransport(connect({ kind: 'Files', paths: [cluster.kubeconfigPath] }));
  const kube = createClient(transport);
  const namespace = world.namespaces.sandboxes;
  const kubevirt = await startKubeVirt({ kube, transport, namespace, kubectl: cluster.kubectl });
  const terms = { kube, logger: silentLogger, tempDir: tmpdir(), env: process.env };
  const provider = machinePool(terms);
  await apply(cluster, keySecret(namespace), poolOfMachines(namespace, replicas));
  await world.operator.waitReady();
  return {
    world,
    own: () => ownMachine(kube, namespace),
    claim: () => claimOne(provider, world),
    async release(runUid) {
      while (!(await provider.release(runUid, namespace))) await pause(50);
    },
    async close() {
      await provider.close();
      await kubevirt.close();
      await transport.close();
      await world.close();
    },
  };
}

function ownMachine(kube: KubeClient, namespace: string): Promise<Sandbox> {
  const wish = {
    ...{ namespace, name: `vm-${randomUUID().slice(0, 8)}`, machine: MACHINE, user: 'sandbox' },
    ...{ runUid: randomUUID(), workflow: 'bench', reapBy: new Date(Date.now() + 1_800_000) },
  };
  return openOwnMachine(wish, {
    ...{ kube, logger: silentLogger, tempDir: tmpdir(), env: process.env, prove: false },
  });
}

async function claimOne(provider: MachinePool, { namespaces }: World) {
  // No AgentRun stands behind it: with a namespace the reaper would find it gone.
  const runUid = randomUUID();
  const request: SandboxRequest = {
    ...{ runUid, runName: 'bench', runNamespace: '', workflow: 'bench', epoch: 1, labels: {} },
    pool: { namespace: namespaces.sandboxes, name: 'machines' },
    reapBy: new Date(Date.now() + 1_800_000),
  };
  for (;;) {
    const before = performance.now();
    const result = await provider.claim(request);
    if (result.kind === 'Unavailable') throw new Error(`bench: ${result.message}`);
    if (result.kind === 'Claimed') {
      const claimMs = performance.now() - before;
      await result.sandbox.start();
      return { sandbox: result.sandbox, runUid, claimMs, firstMs: performance.now() - before };
    }
    await pause(100);
  }
}

const keySecret = (namespace: string): object => ({
  ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'vm-key', namespace } },
  stringData: { id: sshKeyPair(generateKeyPairSync('ed25519').privateKey, 1).privateKey },
});

const poolOfMachines = (namespace: string, replicas: number): object => ({
  apiVersion: 'hummingbird.dev/v1alpha1',
  kind: 'SandboxPool',
  metadata: { name: 'machines', namespace },
  spec: {
    ...{ replicas, backend: 'VirtualMachineInstance', egressProbe: { enabled: false } },
    virtualMachineInstance: { ...MACHINE, ssh: { privateKeySecretRef: { name: 'vm-key', key: 'id' } } },
  },
});

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

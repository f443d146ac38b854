import { generateKeyPairSync } from 'node:crypto';
import { createPoolController } from '../../src/controllers/pool/controller.ts';
import { machineForRun } from '../../src/controllers/pool/machines/manifests.ts';
import { SANDBOX_POOLS, type SandboxPool, type SandboxPoolStatus } from '../../src/crds/sandbox-pool.ts';
import { POD, SECRET } from '../../src/kube/kinds.ts';
import { VIRTUAL_MACHINE_INSTANCE, type VirtualMachineInstance } from '../../src/kube/kubevirt/kinds.ts';
import { sshKeyPair } from '../../src/kube/kubevirt/ssh-key.ts';
import { silentLogger } from '../../src/kube/log.ts';
import { type MachinePool, machinePool } from '../../src/sandbox/pool/vmi-pool.ts';
import type { SandboxRequest } from '../../src/sandbox/port.ts';
import type { KubeVirtOptions } from '../fakes/kubevirt/stand-in.ts';
import { MACHINE, type MachineWorld, machineWorld } from './machines.ts';
import { aPool, until } from './pool.ts';

/** The stand-in for KubeVirt and a SandboxPool controller, in namespaces of their own. */
export interface MachinePoolWorld extends MachineWorld {
  readonly namespace: string;
  /** Of machines with the key in the Secret `vm-key`, without probe. */
  aPool(name: string, replicas: number): SandboxPool;
  /** Creates it and waits until as many can be claimed. */
  filled(name: string, replicas: number): Promise<void>;
  status(name: string): Promise<SandboxPoolStatus | undefined>;
  machines(selector: string): Promise<readonly VirtualMachineInstance[]>;
  /** As one operator process has it; closed with the world. */
  provider(kube?: MachineWorld['kube']): MachinePool;
  aRequest(pool: string, rest?: Partial<SandboxRequest>): SandboxRequest;
  aKey(name: string): {
    readonly apiVersion: string;
    readonly kind: string;
    readonly metadata: { readonly name: string; readonly namespace: string };
    readonly stringData: { readonly id: string };
  };
}

export async function machinePoolWorld(faults?: KubeVirtOptions['faults']): Promise<MachinePoolWorld> {
  const world = await machineWorld(faults);
  const { kube, events } = world;
  const namespace = world.namespaces.sandboxes;
  const [pools, pods] = await Promise.all([
    world.informer(SANDBOX_POOLS, namespace),
    world.informer(POD, namespace),
  ]);
  const operator = { namespace: world.namespaces.agents, labels: { app: 'operator' } };
  const controller = createPoolController({ kube, events, pools, pods, operator });
  await controller.start();
  const providers: MachinePool[] = [];

  const aKey = (name: string) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace },
    stringData: { id: sshKeyPair(generateKeyPairSync('ed25519').privateKey, 1).privateKey },
  });
  await kube.create(SECRET, aKey('vm-key'));

  const poolOf = (name: string, replicas: number): SandboxPool => {
    const { spec, ...pool } = aPool(name, namespace, { replicas });
    const { pod: _pod, ...others } = spec;
    return {
      ...pool,
      spec: {
        ...others,
        backend: 'VirtualMachineInstance',
        virtualMachineInstance: {
          ...MACHINE,
          ssh: { user: 'sandbox', privateKeySecretRef: { name: 'vm-key', key: 'id' } },
        },
        egressProbe: { ...spec.egressProbe, enabled: false },
      },
    };
  };
  const status = async (name: string) => (await kube.get(SANDBOX_POOLS, { namespace, name }))?.status;

  return {
    ...world,
    namespace,
    aPool: poolOf,
    aKey,
    status,
    async filled(name, replicas) {
      await kube.create(SANDBOX_POOLS, poolOf(name, replicas));
      await until(`${name} is full`, async () => (await status(name))?.ready === replicas);
    },
    async machines(labelSelector) {
      return (await kube.list(VIRTUAL_MACHINE_INSTANCE, { namespace, labelSelector })).items;
    },
    provider(through = kube) {
      const provider = machinePool({
        ...{ kube: through, logger: silentLogger, tempDir: world.tempDir, env: process.env },
        machineOf: machineForRun,
      });
      providers.push(provider);
      return provider;
    },
    aRequest(pool, rest = {}) {
      const runUid = crypto.randomUUID();
      return {
        ...{ runUid, runName: `run-${runUid.slice(0, 8)}`, runNamespace: world.namespaces.agents },
        ...{ workflow: 'analyze', pool: { namespace, name: pool }, epoch: 1, labels: {} },
        reapBy: new Date(Date.now() + 1_800_000),
        ...rest,
      };
    },
    async close() {
      await Promise.all(providers.map((provider) => provider.close()));
      await controller.stop();
      await world.close();
    },
  };
}

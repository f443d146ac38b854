import { labelSelector, labelValue } from '../../../crds/labels.ts';
import { LABELS } from '../../../crds/meta.ts';
import type { SandboxPool } from '../../../crds/sandbox-pool.ts';
import { isKubeError } from '../../../kube/errors.ts';
import { NETWORK_POLICY, type NetworkPolicy, SECRET, type Secret } from '../../../kube/kinds.ts';
import {
  VIRTUAL_MACHINE_INSTANCE,
  VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
  type VirtualMachineInstance,
  type VirtualMachineInstanceReplicaSet,
} from '../../../kube/kubevirt/kinds.ts';
import { publicKeyOf } from '../../../kube/kubevirt/ssh-key.ts';
import type { KubeClient } from '../../../kube/port.ts';
import type { EgressReport } from '../egress/condition.ts';
import { ownedName } from '../manifests.ts';
import type { Obstacle } from '../status.ts';
import { keysName, type MachinePoolSettings, type OperatorPods } from './manifests.ts';

export interface MachinesObserved {
  readonly pool: SandboxPool;
  readonly settings: MachinePoolSettings;
  readonly operator: OperatorPods;
  /** Public half of the pool's private key, or why there is none. */
  readonly publicKey: string | Obstacle;
  /** Undefined: the cluster does not serve KubeVirt's kinds. */
  readonly kubevirt:
    | {
        readonly machineSet: VirtualMachineInstanceReplicaSet | undefined;
        /** Every machine of the pool, standing by or claimed, those that are going included. */
        readonly machines: readonly VirtualMachineInstance[];
      }
    | undefined;
  readonly networkPolicy: NetworkPolicy | undefined;
  readonly keys: Secret | undefined;
  readonly egress: EgressReport | undefined;
}

export interface MachinesObserveOptions {
  readonly kube: KubeClient;
  readonly operator: OperatorPods;
  readonly egressReport?: (pool: SandboxPool) => EgressReport | undefined;
}

/** From the API server: machines are few and slow, and KubeVirt may come later than the operator. Throws KubeError. */
export async function observeMachines(
  { kube, operator, egressReport }: MachinesObserveOptions,
  pool: SandboxPool,
  settings: MachinePoolSettings,
): Promise<MachinesObserved> {
  const namespace = pool.metadata.namespace ?? '';
  const owned = { namespace, name: ownedName(pool) };
  const [publicKey, kubevirt, networkPolicy, keys] = await Promise.all([
    readPublicKey(kube, namespace, settings),
    readKubeVirt(kube, pool),
    kube.get(NETWORK_POLICY, owned),
    kube.get(SECRET, { namespace, name: keysName(pool) }),
  ]);
  const egress = egressReport?.(pool);
  return { pool, settings, operator, publicKey, kubevirt, networkPolicy, keys, egress };
}

async function readPublicKey(
  kube: KubeClient,
  namespace: string,
  { ssh: { privateKeySecretRef } }: MachinePoolSettings,
): Promise<string | Obstacle> {
  const { name, key } = privateKeySecretRef;
  const what = `Secret ${namespace}/${name} of spec.virtualMachineInstance.ssh.privateKeySecretRef`;
  const value = (await kube.get(SECRET, { namespace, name }))?.data?.[key];
  if (value === undefined)
    return { reason: 'KeyNotFound', message: `${what} has no key ${key}, or is not there` };
  try {
    return publicKeyOf(Buffer.from(value, 'base64').toString('utf8'));
  } catch (error) {
    return {
      reason: 'KeyUnusable',
      message: `${what}, key ${key}: ${error instanceof Error ? error.message : ''}`,
    };
  }
}

async function readKubeVirt(kube: KubeClient, pool: SandboxPool): Promise<MachinesObserved['kubevirt']> {
  const { namespace = '', name = '' } = pool.metadata;
  const selector = labelSelector({ [LABELS.pool]: labelValue(name) });
  try {
    const [sets, { items }] = await Promise.all([
      // A GET's 404 does not tell whether the kind is served.
      kube.list(VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, {
        namespace,
        fieldSelector: `metadata.name=${ownedName(pool)}`,
      }),
      kube.list(VIRTUAL_MACHINE_INSTANCE, { namespace, labelSelector: selector }),
    ]);
    return { machineSet: sets.items[0], machines: items };
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return undefined;
    throw error;
  }
}

import { labelValue } from '../../crds/labels.ts';
import { ANNOTATIONS, LABELS, MANAGED_BY } from '../../crds/meta.ts';
import { SANDBOX_NAME } from '../../kube/isolated-pod.ts';
import type { NetworkPolicy, Secret } from '../../kube/kinds.ts';
import type { VirtualMachineInstance } from '../../kube/kubevirt/kinds.ts';
import { KEYS_FILE, type MachineSettings, machineSpec, SSH_PORT } from '../../kube/kubevirt/machine.ts';

/** A machine that is one run's own from its beginning, and belongs to no pool. */
export interface OwnMachineWish {
  readonly namespace: string;
  readonly name: string;
  readonly machine: MachineSettings;
  /** Who commands run as. */
  readonly user: string;
  readonly runUid: string;
  readonly workflow: string;
  /** KubeVirt knows no deadline of a machine: the operator's reaper deletes it then, should nobody be left. */
  readonly reapBy: Date;
}

export function ownMachine(wish: OwnMachineWish): VirtualMachineInstance {
  const metadata = metadataOf(wish);
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, [LABELS.role]: 'active' },
      annotations: { [ANNOTATIONS.reapBy]: wish.reapBy.toISOString() },
    },
    spec: machineSpec(wish.machine, wish.name),
  };
}

/** The key that the machine lets in; gone with the machine, whoever deletes it. */
export function ownKeys(wish: OwnMachineWish, owner: VirtualMachineInstance, publicKey: string): Secret {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...metadataOf(wish), ownerReferences: [ownedBy(owner)] },
    stringData: { [KEYS_FILE]: `${publicKey}\n` },
  };
}

/** Nothing out, and nothing in but SSH: the launcher pods carry the machine's labels. */
export function ownMachinePolicy(wish: OwnMachineWish, owner: VirtualMachineInstance): NetworkPolicy {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { ...metadataOf(wish), ownerReferences: [ownedBy(owner)] },
    spec: {
      podSelector: { matchLabels: { [LABELS.run]: wish.runUid } },
      policyTypes: ['Egress', 'Ingress'],
      egress: [],
      ingress: [{ ports: [{ protocol: 'TCP', port: SSH_PORT }] }],
    },
  };
}

const ownedBy = ({ apiVersion, kind, metadata: { name = '', uid = '' } }: VirtualMachineInstance) => ({
  ...{ apiVersion, kind, name, uid },
});

const metadataOf = ({ namespace, name, runUid, workflow }: OwnMachineWish) => ({
  namespace,
  name,
  labels: {
    ...SANDBOX_NAME,
    [LABELS.managedBy]: MANAGED_BY,
    [LABELS.run]: runUid,
    [LABELS.workflow]: labelValue(workflow),
  },
});

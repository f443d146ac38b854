import type { KubeObject, ObjectMeta, ResourceKind } from '../../crds/meta.ts';
import type { LabelSelector, PodCondition } from '../kinds.ts';

/** The parts of KubeVirt's kinds that we read or write. */
export interface VirtualMachineInstance extends KubeObject {
  readonly spec: MachineSpec;
  readonly status?: MachineStatus;
}

export interface MachineSpec {
  readonly domain: {
    readonly cpu?: { readonly cores?: number };
    readonly memory?: { readonly guest?: string };
    readonly resources?: { readonly requests?: Readonly<Record<string, string>> };
    readonly devices: {
      readonly autoattachGraphicsDevice?: boolean;
      readonly disks: readonly MachineDisk[];
      readonly interfaces: readonly { readonly name: string; readonly masquerade: object }[];
      readonly rng?: object;
    };
  };
  readonly networks: readonly { readonly name: string; readonly pod: object }[];
  readonly volumes: readonly MachineVolume[];
  readonly terminationGracePeriodSeconds?: number;
  readonly evictionStrategy?: 'None' | 'LiveMigrate' | 'LiveMigrateIfPossible' | 'External';
  readonly readinessProbe?: Readonly<Record<string, unknown>>;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly Readonly<Record<string, unknown>>[];
}

export interface MachineDisk {
  readonly name: string;
  /** How the guest finds it: `/dev/disk/by-id/virtio-<serial>`. */
  readonly serial?: string;
  readonly disk: { readonly bus: 'virtio' };
}

export interface MachineVolume {
  readonly name: string;
  readonly containerDisk?: { readonly image: string; readonly imagePullPolicy?: string };
  readonly secret?: { readonly secretName: string };
}

export interface MachineStatus {
  readonly phase?:
    | 'Pending'
    | 'Scheduling'
    | 'Scheduled'
    | 'Running'
    | 'WaitingForSync'
    | 'Succeeded'
    | 'Failed'
    | 'Unknown';
  /** One word for why it is in this phase. */
  readonly reason?: string;
  readonly nodeName?: string;
  /** Without `ipAddress` as long as the launcher pod's address is not known. */
  readonly interfaces?: readonly { readonly name?: string; readonly ipAddress?: string }[];
  /** Uids of launcher pods with the node of each; says nothing about whether the guest has booted. */
  readonly activePods?: Readonly<Record<string, string>>;
  /** The node that it is to leave. */
  readonly evacuationNodeName?: string;
  readonly conditions?: readonly PodCondition[];
}

export interface VirtualMachineInstanceReplicaSet extends KubeObject {
  readonly spec: {
    readonly replicas?: number;
    readonly paused?: boolean;
    readonly selector: LabelSelector;
    readonly template: { readonly metadata?: ObjectMeta; readonly spec: MachineSpec };
  };
  readonly status?: {
    readonly replicas?: number;
    readonly readyReplicas?: number;
    readonly labelSelector?: string;
    readonly conditions?: readonly PodCondition[];
  };
}

/**
 * On the pod in which KubeVirt runs a machine, beside the machine's own labels: such a pod is no sandbox, whatever it
 * carries.
 */
export const LAUNCHER = { label: 'kubevirt.io', value: 'virt-launcher' } as const;

export const VIRTUAL_MACHINE_INSTANCE: ResourceKind<VirtualMachineInstance> = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  plural: 'virtualmachineinstances',
  namespaced: true,
};

export const VIRTUAL_MACHINE_INSTANCE_REPLICA_SET: ResourceKind<VirtualMachineInstanceReplicaSet> = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstanceReplicaSet',
  plural: 'virtualmachineinstancereplicasets',
  namespaced: true,
};

import type { Condition, KubeObject, ObjectMeta, ResourceKind } from '../crds/meta.ts';

/** The parts of built-in kinds that we read or write. Everything else of an object passes through untouched. */
export interface Namespace extends KubeObject {
  readonly status?: { readonly phase?: 'Active' | 'Terminating' };
}

export interface Secret extends KubeObject {
  readonly type?: string;
  /** Values in base64. */
  readonly data?: Readonly<Record<string, string>>;
  readonly stringData?: Readonly<Record<string, string>>;
}

export interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
  readonly binaryData?: Readonly<Record<string, string>>;
}

export interface Pod extends KubeObject {
  readonly spec: PodSpec;
  readonly status?: PodStatus;
}

export interface PodSpec {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly nodeName?: string;
  readonly serviceAccountName?: string;
  readonly automountServiceAccountToken?: boolean;
  readonly enableServiceLinks?: boolean;
  readonly restartPolicy?: 'Always' | 'OnFailure' | 'Never';
  readonly terminationGracePeriodSeconds?: number;
  readonly activeDeadlineSeconds?: number;
  readonly dnsPolicy?: 'ClusterFirst' | 'Default' | 'None';
  readonly dnsConfig?: { readonly nameservers?: readonly string[] };
  readonly runtimeClassName?: string;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly Readonly<Record<string, unknown>>[];
  readonly imagePullSecrets?: readonly { readonly name?: string }[];
  readonly securityContext?: Readonly<Record<string, unknown>>;
  readonly volumes?: readonly Readonly<Record<string, unknown>>[];
}

export interface Container {
  readonly name: string;
  readonly image?: string;
  readonly imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never';
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly workingDir?: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly resources?: {
    readonly requests?: Readonly<Record<string, string>>;
    readonly limits?: Readonly<Record<string, string>>;
  };
  readonly volumeMounts?: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
  }[];
  readonly securityContext?: Readonly<Record<string, unknown>>;
  readonly readinessProbe?: Readonly<Record<string, unknown>>;
}

export interface PodStatus {
  readonly phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
  readonly reason?: string;
  readonly message?: string;
  readonly podIP?: string;
  readonly podIPs?: readonly { readonly ip?: string }[];
  readonly hostIP?: string;
  readonly hostIPs?: readonly { readonly ip?: string }[];
  readonly startTime?: string;
  readonly conditions?: readonly PodCondition[];
  readonly containerStatuses?: readonly ContainerStatus[];
}

export interface PodCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
}

export interface ContainerStatus {
  readonly name: string;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly running?: { readonly startedAt?: string };
    readonly terminated?: { readonly reason?: string; readonly message?: string; readonly exitCode: number };
  };
  /** How it ended before its last restart. */
  readonly lastState?: {
    readonly terminated?: { readonly reason?: string; readonly message?: string; readonly exitCode: number };
  };
}

export interface PodTemplate {
  readonly metadata?: ObjectMeta;
  readonly spec: PodSpec;
}

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values?: readonly string[];
  }[];
}

export interface Deployment extends KubeObject {
  readonly spec: {
    readonly replicas?: number;
    readonly selector: LabelSelector;
    readonly template: PodTemplate;
    readonly strategy?: Readonly<Record<string, unknown>>;
    readonly minReadySeconds?: number;
    readonly revisionHistoryLimit?: number;
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly readyReplicas?: number;
    readonly availableReplicas?: number;
    readonly updatedReplicas?: number;
    readonly conditions?: readonly PodCondition[];
  };
}

export interface ReplicaSet extends KubeObject {
  readonly spec: {
    readonly replicas?: number;
    readonly selector: LabelSelector;
    readonly template?: PodTemplate;
  };
  readonly status?: { readonly replicas?: number; readonly readyReplicas?: number };
}

/** `data` cannot be changed once it is written. */
export interface ControllerRevision extends KubeObject {
  readonly data: unknown;
  readonly revision: number;
}

export interface NetworkPolicy extends KubeObject {
  readonly spec: {
    readonly podSelector: LabelSelector;
    readonly policyTypes?: readonly ('Ingress' | 'Egress')[];
    readonly ingress?: readonly Readonly<Record<string, unknown>>[];
    readonly egress?: readonly Readonly<Record<string, unknown>>[];
  };
}

export interface Lease extends KubeObject {
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly leaseDurationSeconds?: number;
    /** RFC 3339 with six digits of the second (`MicroTime`). */
    readonly acquireTime?: string;
    readonly renewTime?: string;
    readonly leaseTransitions?: number;
  };
}

/** core/v1 Event. */
export interface Event extends KubeObject {
  readonly involvedObject: {
    readonly apiVersion?: string;
    readonly kind?: string;
    readonly namespace?: string;
    readonly name?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
  };
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly count?: number;
  readonly firstTimestamp?: string;
  readonly lastTimestamp?: string;
  readonly source?: { readonly component?: string; readonly host?: string };
  readonly reportingComponent?: string;
  readonly reportingInstance?: string;
}

export interface CustomResourceDefinition extends KubeObject {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly plural: string; readonly kind: string };
    readonly versions: readonly {
      readonly name: string;
      readonly served: boolean;
      readonly storage: boolean;
    }[];
  };
  readonly status?: { readonly conditions?: readonly Condition[] };
}

const core = <T extends KubeObject>(kind: string, plural: string): ResourceKind<T> => ({
  apiVersion: 'v1',
  kind,
  plural,
  namespaced: true,
});

const grouped = <T extends KubeObject>(
  apiVersion: string,
  kind: string,
  plural: string,
): ResourceKind<T> => ({
  apiVersion,
  kind,
  plural,
  namespaced: true,
});

export const NAMESPACE: ResourceKind<Namespace> = {
  ...core<Namespace>('Namespace', 'namespaces'),
  namespaced: false,
};
export const POD = core<Pod>('Pod', 'pods');
export const SECRET = core<Secret>('Secret', 'secrets');
export const CONFIG_MAP = core<ConfigMap>('ConfigMap', 'configmaps');
export const EVENT = core<Event>('Event', 'events');
export const DEPLOYMENT = grouped<Deployment>('apps/v1', 'Deployment', 'deployments');
export const REPLICA_SET = grouped<ReplicaSet>('apps/v1', 'ReplicaSet', 'replicasets');
export const CONTROLLER_REVISION = grouped<ControllerRevision>(
  'apps/v1',
  'ControllerRevision',
  'controllerrevisions',
);
export const NETWORK_POLICY = grouped<NetworkPolicy>(
  'networking.k8s.io/v1',
  'NetworkPolicy',
  'networkpolicies',
);
export const LEASE = grouped<Lease>('coordination.k8s.io/v1', 'Lease', 'leases');
export const CUSTOM_RESOURCE_DEFINITION: ResourceKind<CustomResourceDefinition> = {
  ...grouped<CustomResourceDefinition>(
    'apiextensions.k8s.io/v1',
    'CustomResourceDefinition',
    'customresourcedefinitions',
  ),
  namespaced: false,
};

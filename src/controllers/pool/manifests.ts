import { PROBE_AWAITED, PROBE_DISABLED } from '../../crds/egress.ts';
import { labelSelector, labelValue, standbyLabels } from '../../crds/labels.ts';
import { ANNOTATIONS, API_VERSION, LABELS, MANAGED_BY, type OwnerReference } from '../../crds/meta.ts';
import type { SandboxPool, SandboxPoolSpec } from '../../crds/sandbox-pool.ts';
import { isolatedPodSpec, NO_TRAFFIC, SANDBOX_NAME } from '../../kube/isolated-pod.ts';
import type { Deployment, NetworkPolicy, Pod, PodSpec } from '../../kube/kinds.ts';

export type PodSettings = NonNullable<SandboxPoolSpec['pod']>;

/** For the scale subresource. */
export const standbySelector = (pool: SandboxPool): string => labelSelector(standbyLabels(nameOf(pool)));

/** Name of what the pool owns: its own, shortened to what a label and so a pod's name can hold. */
export const ownedName = (pool: SandboxPool): string => labelValue(nameOf(pool)).toLowerCase();

/** Keeps as many pods standing by, `spec.replicas` when left out: a claimed one no longer matches and is replaced. */
export function deploymentFor(
  pool: SandboxPool,
  settings: PodSettings,
  replicas: number = pool.spec.replicas,
): Deployment {
  const labels = standbyLabels(nameOf(pool));
  const { enabled: probed } = pool.spec.egressProbe;
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: metadataFor(pool),
    spec: {
      replicas,
      selector: { matchLabels: labels },
      // During a roll-out as many stand by as before: the new one comes first.
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      revisionHistoryLimit: 2,
      ...(probed ? { minReadySeconds: PROOF_SECONDS } : {}),
      template: {
        metadata: {
          labels: { ...labels, ...COMMON_LABELS },
          // A pod carries its terms, so that a claim need not read the pool.
          annotations: {
            [ANNOTATIONS.maxActive]: pool.spec.maxActive,
            ...(probed ? {} : { [ANNOTATIONS.egressProbe]: PROBE_DISABLED }),
          },
        },
        spec: podSpec(settings),
      },
    },
  };
}

/**
 * A pod as the pool's others are, that belongs to a run from its beginning: it never stands by, so its ReplicaSet does
 * not count it, and it waits for its own proof. Undefined for a pool of another backend.
 */
export function podForRun(pool: SandboxPool): Pod | undefined {
  if (pool.spec.pod === undefined) return undefined;
  const { metadata, spec } = deploymentFor(pool, pool.spec.pod).spec.template;
  const proof = pool.spec.egressProbe.enabled ? { [ANNOTATIONS.egressProbe]: PROBE_AWAITED } : {};
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...metadata, annotations: { ...metadata?.annotations, ...proof } },
    spec,
  };
}

/** What a proof takes from Ready on: a roll-out removes an old pod when the new one can be claimed, not before. */
const PROOF_SECONDS = 8;

/** No traffic in either direction for every pod of the pool, standing by or claimed. */
export function networkPolicyFor(pool: SandboxPool): NetworkPolicy {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: metadataFor(pool),
    spec: {
      podSelector: { matchLabels: { [LABELS.pool]: labelValue(nameOf(pool)) } },
      ...NO_TRAFFIC,
    },
  };
}

export function ownerReference(pool: SandboxPool): OwnerReference {
  return {
    apiVersion: API_VERSION,
    kind: 'SandboxPool',
    name: nameOf(pool),
    uid: pool.metadata.uid ?? '',
    controller: true,
    blockOwnerDeletion: true,
  };
}

export function metadataFor(pool: SandboxPool): Deployment['metadata'] {
  return {
    name: ownedName(pool),
    namespace: pool.metadata.namespace ?? '',
    labels: { [LABELS.managedBy]: MANAGED_BY, [LABELS.pool]: labelValue(nameOf(pool)) },
    ownerReferences: [ownerReference(pool)],
  };
}

/** No activeDeadlineSeconds: it counts from the pod's creation, and would end pods that merely stood by. */
function podSpec(settings: PodSettings): PodSpec {
  const { image, imagePullPolicy, imagePullSecrets, runtimeClassName, nodeSelector, tolerations } = settings;
  const { requests, limits } = settings.resources ?? defaultResources(settings);
  return {
    ...isolatedPodSpec({
      image,
      imagePullPolicy: imagePullPolicy ?? 'IfNotPresent',
      resources: {
        ...(requests === undefined ? {} : { requests: quantities(requests) }),
        ...(limits === undefined ? {} : { limits: quantities(limits) }),
      },
      workspaceLimit: String(settings.workspace.sizeLimit),
    }),
    restartPolicy: 'Always',
    ...(runtimeClassName === undefined ? {} : { runtimeClassName }),
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
    ...(tolerations === undefined ? {} : { tolerations }),
    ...(imagePullSecrets === undefined ? {} : { imagePullSecrets }),
  };
}

export const COMMON_LABELS = { [LABELS.managedBy]: MANAGED_BY, ...SANDBOX_NAME } as const;

/** What the field's description promises when it is left out. */
const DEFAULT_RESOURCES: NonNullable<PodSettings['resources']> = {
  requests: { cpu: '100m', memory: '256Mi', 'ephemeral-storage': '256Mi' },
  limits: { cpu: '1', memory: '1Gi', 'ephemeral-storage': '2Gi' },
};

/** /tmp counts as ephemeral storage: where its limit is set, that limit is the only one. */
function defaultResources({ workspace }: PodSettings): NonNullable<PodSettings['resources']> {
  if (workspace.sizeLimit === DEFAULT_RESOURCES.limits?.['ephemeral-storage']) return DEFAULT_RESOURCES;
  return { requests: { cpu: '100m', memory: '256Mi' }, limits: { cpu: '1', memory: '1Gi' } };
}

const quantities = (values: Readonly<Record<string, string | number>>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]));

const nameOf = (pool: SandboxPool): string => pool.metadata.name ?? '';

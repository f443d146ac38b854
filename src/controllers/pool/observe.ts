import { labelSelector, labelValue } from '../../crds/labels.ts';
import { LABELS } from '../../crds/meta.ts';
import { SANDBOX_POOLS, type SandboxPool } from '../../crds/sandbox-pool.ts';
import {
  DEPLOYMENT,
  type Deployment,
  NETWORK_POLICY,
  type NetworkPolicy,
  POD,
  type Pod,
} from '../../kube/kinds.ts';
import type { KubeClient, ObjectRef } from '../../kube/port.ts';
import type { EgressReport } from './egress/condition.ts';
import { ownedName } from './manifests.ts';

export interface Observed {
  readonly pool: SandboxPool;
  readonly deployment: Deployment | undefined;
  readonly networkPolicy: NetworkPolicy | undefined;
  /** Every pod of the pool, standing by or claimed, those that are going included. */
  readonly pods: readonly Pod[];
  /** What the probe says; undefined while nothing is known, or where nobody probes. */
  readonly egress?: EgressReport;
}

export interface ObserveOptions {
  readonly kube: KubeClient;
  /**
   * Pods of a namespace from a cache, undefined while there is none. Enough here: what it leads to is a count, or
   * a deletion that the API server refuses when the pod has changed. Left out: listed every time.
   */
  readonly cachedPods?: (namespace: string) => readonly Pod[] | undefined;
  /** Left out: nobody probes here. */
  readonly egressReport?: (pool: SandboxPool) => EgressReport | undefined;
}

/** Undefined when there is no such pool. Throws KubeError. */
export async function observe(
  { kube, cachedPods, egressReport }: ObserveOptions,
  ref: ObjectRef,
): Promise<Observed | undefined> {
  const pool = await kube.get(SANDBOX_POOLS, ref);
  if (pool === undefined) return undefined;
  const namespace = pool.metadata.namespace ?? '';
  const owned = { namespace, name: ownedName(pool) };
  const label = labelValue(pool.metadata.name ?? '');
  const [deployment, networkPolicy, pods] = await Promise.all([
    kube.get(DEPLOYMENT, owned),
    kube.get(NETWORK_POLICY, owned),
    cachedPods?.(namespace)?.filter((pod) => pod.metadata.labels?.[LABELS.pool] === label) ??
      kube
        .list(POD, { namespace, labelSelector: labelSelector({ [LABELS.pool]: label }) })
        .then(({ items }) => items),
  ]);
  const egress = egressReport?.(pool);
  return { pool, deployment, networkPolicy, pods, ...(egress === undefined ? {} : { egress }) };
}

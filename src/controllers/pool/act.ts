import type { SandboxPool } from '../../crds/sandbox-pool.ts';
import { isKubeError } from '../../kube/errors.ts';
import { DEPLOYMENT, NETWORK_POLICY, POD, type Pod } from '../../kube/kinds.ts';
import type { EventRecorder, KubeClient } from '../../kube/port.ts';
import type { PoolAction } from './decide.ts';
import type { PoolMetrics } from './metrics.ts';

export const FIELD_MANAGER = 'hummingbird-pool';

export interface PoolActors {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  readonly metrics?: PoolMetrics;
}

/** Does one action; doing it again changes nothing. False when it was not for now. Throws KubeError. */
export async function act(
  { kube, events, metrics }: PoolActors,
  pool: SandboxPool,
  action: PoolAction,
): Promise<boolean> {
  switch (action.kind) {
    case 'ApplyNetworkPolicy':
      await kube.patch(NETWORK_POLICY, refOf(action.object), apply(action.object));
      return true;
    case 'ApplyDeployment':
      await kube.patch(DEPLOYMENT, refOf(action.object), apply(action.object));
      return true;
    case 'DeletePod': {
      if (!(await deleted(kube, action.pod))) return false;
      const message = `${action.reason}: ${action.message}`;
      events.record(action.pod, 'Warning', 'BrokenSandboxDeleted', message);
      events.record(pool, 'Warning', 'SandboxBroken', `${action.pod.metadata.name}: ${message}`);
      metrics?.broke(refOf(pool), action.reason);
      return true;
    }
    case 'EvictPod':
      if (!(await deleted(kube, action.pod))) return false;
      events.record(action.pod, 'Normal', 'SandboxEvicted', action.message);
      events.record(pool, 'Normal', 'SandboxEvicted', `${action.pod.metadata.name}: ${action.message}`);
      metrics?.reaped(refOf(pool), 'SandboxEvicted');
      return true;
    default:
      return action satisfies never;
  }
}

/** False when it had gone, or has changed since it was looked at: the next look decides anew. */
async function deleted(kube: KubeClient, pod: Pod): Promise<boolean> {
  const { uid = '', resourceVersion = '' } = pod.metadata;
  try {
    return await kube.delete(POD, refOf(pod), { uid, resourceVersion });
  } catch (error) {
    if (isKubeError(error, 'Conflict')) return false;
    throw error;
  }
}

/** By force: nobody else may own a field of these objects. */
const apply = (body: unknown) => ({ type: 'apply', body, fieldManager: FIELD_MANAGER, force: true }) as const;

const refOf = ({
  metadata,
}: {
  readonly metadata: { readonly name?: string; readonly namespace?: string };
}) => ({
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
});

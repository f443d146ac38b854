import { isKubeError } from '../../kube/errors.ts';
import { DEPLOYMENT, NETWORK_POLICY, POD } from '../../kube/kinds.ts';
import type { EventRecorder, KubeClient } from '../../kube/port.ts';
import type { PoolAction } from './decide.ts';

export const FIELD_MANAGER = 'hummingbird-pool';

/** Does one action; doing it again changes nothing. Throws KubeError. */
export async function act(
  { kube, events }: { readonly kube: KubeClient; readonly events: EventRecorder },
  action: PoolAction,
): Promise<void> {
  switch (action.kind) {
    case 'ApplyNetworkPolicy':
      await kube.patch(NETWORK_POLICY, refOf(action.object), apply(action.object));
      return;
    case 'ApplyDeployment':
      await kube.patch(DEPLOYMENT, refOf(action.object), apply(action.object));
      return;
    case 'DeletePod': {
      const { uid = '', resourceVersion = '' } = action.pod.metadata;
      try {
        if (!(await kube.delete(POD, refOf(action.pod), { uid, resourceVersion }))) return;
      } catch (error) {
        // It has changed since it was looked at: the next look decides anew.
        if (isKubeError(error, 'Conflict')) return;
        throw error;
      }
      events.record(action.pod, 'Warning', 'BrokenSandboxDeleted', action.reason);
      return;
    }
    default:
      return action satisfies never;
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

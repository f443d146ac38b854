import type { SandboxPool } from '../../../crds/sandbox-pool.ts';
import { isKubeError } from '../../../kube/errors.ts';
import { NETWORK_POLICY, SECRET } from '../../../kube/kinds.ts';
import {
  VIRTUAL_MACHINE_INSTANCE,
  VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
} from '../../../kube/kubevirt/kinds.ts';
import { FIELD_MANAGER, type PoolActors } from '../act.ts';
import type { MachineAction } from './decide.ts';

type Deletion = Extract<MachineAction, { readonly kind: 'DeleteMachine' }>;

/** Does one action; doing it again changes nothing. Throws KubeError. */
export async function actOnMachines(
  actors: PoolActors,
  pool: SandboxPool,
  action: MachineAction,
): Promise<void> {
  const { kube } = actors;
  switch (action.kind) {
    case 'ApplyNetworkPolicy':
      await kube.patch(NETWORK_POLICY, refOf(action.object), apply(action.object));
      return;
    case 'ApplyKeys':
      await kube.patch(SECRET, refOf(action.object), apply(action.object));
      return;
    case 'ApplyMachineSet':
      await kube.patch(VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, refOf(action.object), apply(action.object));
      return;
    case 'DeleteMachine':
      if (await deleted(actors, action)) tell(actors, pool, action);
      return;
    default:
      return action satisfies never;
  }
}

/** False when it had gone, or has changed since it was looked at: the next look decides anew. */
async function deleted({ kube }: PoolActors, { machine }: Deletion): Promise<boolean> {
  const { uid = '', resourceVersion = '' } = machine.metadata;
  try {
    return await kube.delete(VIRTUAL_MACHINE_INSTANCE, refOf(machine), { uid, resourceVersion });
  } catch (error) {
    if (isKubeError(error, 'Conflict')) return false;
    throw error;
  }
}

function tell({ events, metrics }: PoolActors, pool: SandboxPool, { machine, ...action }: Deletion): void {
  const of = `${machine.metadata.name}: `;
  switch (action.why) {
    case 'Broken': {
      const message = `${action.reason}: ${action.message}`;
      events.record(machine, 'Warning', 'BrokenSandboxDeleted', message);
      events.record(pool, 'Warning', 'SandboxBroken', of + message);
      metrics?.broke(refOf(pool), action.reason);
      return;
    }
    case 'Evicted':
      events.record(machine, 'Normal', 'SandboxEvicted', action.message);
      events.record(pool, 'Normal', 'SandboxEvicted', of + action.message);
      metrics?.reaped(refOf(pool), 'SandboxEvicted');
      return;
    case 'Outdated':
      events.record(machine, 'Normal', 'OutdatedSandboxReplaced', action.message);
  }
}

/** By force: nobody else may own a field of these objects. */
const apply = (body: unknown) => ({ type: 'apply', body, fieldManager: FIELD_MANAGER, force: true }) as const;

const refOf = ({
  metadata,
}: {
  readonly metadata: { readonly name?: string; readonly namespace?: string };
}) => ({ namespace: metadata.namespace ?? '', name: metadata.name ?? '' });

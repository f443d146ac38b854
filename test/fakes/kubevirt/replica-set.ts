import type { KubeObject } from '../../../src/crds/meta.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceReplicaSet,
} from '../../../src/kube/kubevirt/kinds.ts';
import { hasEnded } from '../../../src/kube/kubevirt/state.ts';

export interface ReplicaSetDecision {
  /** They match and have no owner. */
  readonly adopt: readonly VirtualMachineInstance[];
  /** They are its own and match no longer. */
  readonly release: readonly VirtualMachineInstance[];
  readonly create: number;
  readonly remove: readonly VirtualMachineInstance[];
  readonly status: { readonly replicas: number; readonly readyReplicas: number };
}

/** As KubeVirt's controller decides: what has ended or is going does not count, and is not cleaned up either. Pure. */
export function decideReplicaSet(
  set: VirtualMachineInstanceReplicaSet,
  machines: readonly VirtualMachineInstance[],
): ReplicaSetDecision {
  const wanted = Object.entries(set.spec.selector.matchLabels ?? {});
  const matches = ({ metadata }: KubeObject) =>
    wanted.every(([name, value]) => metadata.labels?.[name] === value);
  const isGoing = ({ metadata }: KubeObject) => metadata.deletionTimestamp !== undefined;
  const isOwn = (machine: KubeObject) => controllerOf(machine) === set.metadata.uid;
  const adopt = machines.filter(
    (machine) => matches(machine) && !isGoing(machine) && controllerOf(machine) === undefined,
  );
  const active = machines.filter(
    (machine) =>
      matches(machine) &&
      (isOwn(machine) || adopt.includes(machine)) &&
      !isGoing(machine) &&
      !hasEnded(machine),
  );
  const surplus = active.length - (set.spec.replicas ?? 1);
  return {
    adopt,
    release: machines.filter((machine) => isOwn(machine) && !matches(machine)),
    create: Math.max(0, -surplus),
    remove: active.toSorted((a, b) => Number(isReady(a)) - Number(isReady(b))).slice(0, Math.max(0, surplus)),
    status: { replicas: active.length, readyReplicas: active.filter(isReady).length },
  };
}

const controllerOf = ({ metadata }: KubeObject): string | undefined =>
  metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid;

const isReady = ({ status }: VirtualMachineInstance): boolean =>
  status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') ?? false;

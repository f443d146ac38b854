import { isEgressProven } from '../../../crds/egress.ts';
import { ANNOTATIONS, LABELS } from '../../../crds/meta.ts';
import type { SandboxPoolStatus } from '../../../crds/sandbox-pool.ts';
import type { NetworkPolicy, Secret } from '../../../kube/kinds.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceReplicaSet,
} from '../../../kube/kubevirt/kinds.ts';
import { hasEnded, isMachineUsable, machineProblem } from '../../../kube/kubevirt/state.ts';
import { covers } from '../drift.ts';
import { evictionMessage, overMax } from '../lingering.ts';
import { ownedName } from '../manifests.ts';
import { heldReplicas, nextSetback } from '../setback.ts';
import { nextStatus, type Obstacle, type PoolView } from '../status.ts';
import { keysFor, machinePolicyFor, machineSetFor } from './manifests.ts';
import type { MachinesObserved } from './observe.ts';

export type MachineAction =
  | { readonly kind: 'ApplyNetworkPolicy'; readonly object: NetworkPolicy }
  | { readonly kind: 'ApplyKeys'; readonly object: Secret }
  | { readonly kind: 'ApplyMachineSet'; readonly object: VirtualMachineInstanceReplicaSet }
  | {
      readonly kind: 'DeleteMachine';
      readonly machine: VirtualMachineInstance;
      /** Broken: it ended by itself. Outdated: made from an older template. Evicted: too many linger. */
      readonly why: 'Broken' | 'Outdated' | 'Evicted';
      readonly reason: string;
      readonly message: string;
    };

export interface MachinesDecision {
  /** In this order: no machine starts before the policy that shuts its network, and before the key that it lets in. */
  readonly actions: readonly MachineAction[];
  readonly status: SandboxPoolStatus;
  readonly requeueAfterMs?: number;
}

/** Machines are looked at, not watched. */
const LOOK_MS = 2_000;
const OBSTACLE_MS = 5_000;

/** What to do for a pool of machines, and what its status says. Pure. */
export function decideMachines(observed: MachinesObserved, now: Date): MachinesDecision {
  const { pool, settings, publicKey, operator, kubevirt } = observed;
  // The garbage collector removes what the pool owns; claimed machines stay with their runs.
  if (pool.metadata.deletionTimestamp !== undefined) return { actions: [], status: pool.status ?? {} };
  const machines = kubevirt?.machines ?? [];
  const ended = machines.filter((machine) => standsBy(machine) && hasEnded(machine));
  const setback = nextSetback(
    pool.status?.setback,
    ended,
    { replicas: pool.spec.replicas, now },
    machineProblem,
  );
  const obstacle = obstacleOf(observed);
  if (obstacle !== undefined || typeof publicKey !== 'string') {
    const status = nextStatus(viewOf(observed, true), { obstacle, setback }, now);
    return { actions: [], status, requeueAfterMs: OBSTACLE_MS };
  }
  const wanted = machineSetFor(pool, settings, { publicKey, replicas: heldReplicas(pool, setback) });
  const template = wanted.spec.template.metadata?.annotations?.[ANNOTATIONS.template];
  const outdated = machines.filter(
    (machine) =>
      standsBy(machine) &&
      !hasEnded(machine) &&
      machine.metadata.annotations?.[ANNOTATIONS.template] !== template,
  );
  const view = viewOf(observed, outdated.length === 0);
  return {
    actions: [
      ...applied('ApplyNetworkPolicy', observed.networkPolicy, machinePolicyFor(pool, operator)),
      ...applied('ApplyKeys', observed.keys, keysFor(pool, publicKey)),
      ...applied('ApplyMachineSet', kubevirt?.machineSet, wanted),
      ...ended.map(broken),
      ...nextOutdated(outdated, machines, now),
      ...overMax(machines, pool.spec.linger.max).map((machine) => evicted(machine, pool.spec.linger.max)),
    ],
    status: nextStatus(view, { obstacle, setback }, now),
    requeueAfterMs: LOOK_MS,
  };
}

function viewOf(
  { pool, kubevirt, egress }: MachinesObserved,
  rolledOut: boolean,
): PoolView<VirtualMachineInstance> {
  const refused = kubevirt?.machineSet?.status?.conditions?.find(
    ({ type, status }) => type === 'ReplicaFailure' && status === 'True',
  );
  return {
    pool,
    sandboxes: kubevirt?.machines ?? [],
    isUsable: isMachineUsable,
    problem: machineProblem,
    refusal: refused && {
      reason: refused.reason ?? 'ReplicaFailure',
      message: refused.message ?? 'machines are refused',
    },
    rolledOut,
    egress,
  };
}

function obstacleOf({
  pool,
  kubevirt,
  publicKey,
  networkPolicy,
  keys,
}: MachinesObserved): Obstacle | undefined {
  if (kubevirt === undefined)
    return {
      reason: 'KubeVirtMissing',
      message: 'the cluster has no VirtualMachineInstance: install KubeVirt',
    };
  for (const object of [kubevirt.machineSet, networkPolicy, keys]) {
    const own = object?.metadata.ownerReferences?.some(
      ({ uid, controller }) => controller === true && uid === pool.metadata.uid,
    );
    if (object === undefined || own === true) continue;
    return {
      reason: 'NameTaken',
      message: `${object.kind} ${object.metadata.name ?? ownedName(pool)} is not this pool's: delete it or give the pool another name`,
    };
  }
  return typeof publicKey === 'string' ? undefined : publicKey;
}

const standsBy = ({ metadata }: VirtualMachineInstance): boolean =>
  metadata.labels?.[LABELS.role] === 'standby' && metadata.deletionTimestamp === undefined;

/** Nothing to do where the API server has all of it. */
function applied<K extends 'ApplyNetworkPolicy' | 'ApplyKeys' | 'ApplyMachineSet'>(
  kind: K,
  actual: unknown,
  object: Extract<MachineAction, { readonly kind: K }>['object'],
): readonly MachineAction[] {
  // One kind, and its own object: the union has exactly this member.
  return covers(actual, object) ? [] : [{ kind, object } as Extract<MachineAction, { readonly kind: K }>];
}

/**
 * One machine of an older template at a time, and the next one when what came in its place can be claimed: what
 * cannot be claimed anyway goes first, all at once.
 */
function nextOutdated(
  outdated: readonly VirtualMachineInstance[],
  machines: readonly VirtualMachineInstance[],
  now: Date,
): readonly MachineAction[] {
  const isReady = (machine: VirtualMachineInstance) =>
    isMachineUsable(machine) && isEgressProven(machine, now);
  const useless = outdated.filter((machine) => !isReady(machine));
  const starting = machines.some(
    (machine) => standsBy(machine) && !outdated.includes(machine) && !hasEnded(machine) && !isReady(machine),
  );
  const going = machines.some(
    ({ metadata }) =>
      metadata.deletionTimestamp !== undefined && metadata.labels?.[LABELS.role] === 'standby',
  );
  const next = starting || going ? [] : outdated.filter(isReady).slice(0, 1);
  return [...useless, ...next].map((machine) => ({
    kind: 'DeleteMachine',
    machine,
    why: 'Outdated',
    reason: 'OutdatedSandbox',
    message: 'it was made from an older template of its pool',
  }));
}

function broken(machine: VirtualMachineInstance): MachineAction {
  const { reason = 'Ended', message = 'it ended by itself' } = machineProblem(machine) ?? {};
  return { kind: 'DeleteMachine', machine, why: 'Broken', reason, message };
}

function evicted(machine: VirtualMachineInstance, max: number): MachineAction {
  const message = evictionMessage(max);
  return { kind: 'DeleteMachine', machine, why: 'Evicted', reason: 'SandboxEvicted', message };
}

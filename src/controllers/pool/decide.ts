import { LABELS } from '../../crds/meta.ts';
import type { SandboxPool, SandboxPoolStatus } from '../../crds/sandbox-pool.ts';
import type { Deployment, NetworkPolicy, Pod } from '../../kube/kinds.ts';
import { podProblem } from '../../kube/pod-state.ts';
import { covers } from './drift.ts';
import { evictionMessage, overMax } from './lingering.ts';
import { deploymentFor, networkPolicyFor, ownedName } from './manifests.ts';
import type { Observed } from './observe.ts';
import { heldReplicas, nextSetback, pauseLeft } from './setback.ts';
import { nextStatus, type Obstacle, podView } from './status.ts';

export type PoolAction =
  | { readonly kind: 'ApplyNetworkPolicy'; readonly object: NetworkPolicy }
  | { readonly kind: 'ApplyDeployment'; readonly object: Deployment }
  /** A standby pod that has ended: its ReplicaSet replaces it, but nobody else removes it. */
  | {
      readonly kind: 'DeletePod';
      readonly pod: Pod;
      readonly reason: string;
      readonly message: string;
    }
  /** More linger than the pool keeps. */
  | { readonly kind: 'EvictPod'; readonly pod: Pod; readonly message: string };

export interface PoolDecision {
  /** In this order: no pod starts before the policy that shuts its network. */
  readonly actions: readonly PoolAction[];
  readonly status: SandboxPoolStatus;
  /** Nothing tells when what is in the way has gone, or when a pause is over. */
  readonly requeueAfterMs?: number;
}

/** What to do for a pool, and what its status says. Pure. */
export function decide(observed: Observed, now: Date): PoolDecision {
  const { pool } = observed;
  if (pool.metadata.deletionTimestamp !== undefined) {
    // The garbage collector removes what the pool owns; claimed pods stay with their runs.
    return { actions: [], status: pool.status ?? {} };
  }
  const obstacle = obstacleOf(observed);
  const ended = observed.pods.filter(hasEndedInStandby);
  const { replicas } = pool.spec;
  const setback = nextSetback(pool.status?.setback, ended, { replicas, now }, podProblem);
  const status = nextStatus(podView(observed), { obstacle, setback }, now);
  if (obstacle !== undefined) return { actions: [], status, requeueAfterMs: OBSTACLE_MS };
  const pause = pauseLeft(setback, now);
  return {
    actions: [
      ...applies(observed, heldReplicas(pool, setback)),
      ...ended.map(deletion),
      ...evictions(observed),
    ],
    status,
    ...(pause === undefined ? {} : { requeueAfterMs: pause + 1 }),
  };
}

const OBSTACLE_MS = 5_000;

function obstacleOf({ pool, deployment, networkPolicy }: Observed): Obstacle | undefined {
  if (pool.spec.pod === undefined) {
    return {
      reason: 'BackendNotSupported',
      message: `backend ${pool.spec.backend} is not served by this operator`,
    };
  }
  for (const object of [deployment, networkPolicy]) {
    if (object === undefined || isOwnedBy(object, pool)) continue;
    return {
      reason: 'NameTaken',
      message: `${object.kind} ${ownedName(pool)} is not this pool's: delete it or give the pool another name`,
    };
  }
  return undefined;
}

const isOwnedBy = (object: Deployment | NetworkPolicy, pool: SandboxPool): boolean =>
  object.metadata.ownerReferences?.some(
    ({ uid, controller }) => controller === true && uid === pool.metadata.uid,
  ) ?? false;

function applies({ pool, deployment, networkPolicy }: Observed, replicas: number): readonly PoolAction[] {
  const actions: PoolAction[] = [];
  const policy = networkPolicyFor(pool);
  if (!covers(networkPolicy, policy)) actions.push({ kind: 'ApplyNetworkPolicy', object: policy });
  if (pool.spec.pod !== undefined) {
    const wanted = deploymentFor(pool, pool.spec.pod, replicas);
    if (!covers(deployment, wanted)) actions.push({ kind: 'ApplyDeployment', object: wanted });
  }
  return actions;
}

const hasEndedInStandby = ({ metadata, status }: Pod): boolean =>
  (status?.phase === 'Failed' || status?.phase === 'Succeeded') &&
  metadata.labels?.[LABELS.role] === 'standby' &&
  metadata.deletionTimestamp === undefined;

function deletion(pod: Pod): PoolAction {
  const { reason = 'Ended', message = 'it ended by itself' } = podProblem(pod) ?? {};
  return { kind: 'DeletePod', pod, reason, message };
}

function evictions({ pool, pods }: Observed): readonly PoolAction[] {
  const { max } = pool.spec.linger;
  return overMax(pods, max).map((pod) => ({ kind: 'EvictPod', pod, message: evictionMessage(max) }));
}

import { LABELS } from '../../crds/meta.ts';
import type { SandboxPool, SandboxPoolStatus } from '../../crds/sandbox-pool.ts';
import type { Deployment, NetworkPolicy, Pod } from '../../kube/kinds.ts';
import { podProblem } from '../../kube/pod-state.ts';
import { covers } from './drift.ts';
import { deploymentFor, networkPolicyFor, ownedName } from './manifests.ts';
import type { Observed } from './observe.ts';
import { nextStatus, type Obstacle } from './status.ts';

export type PoolAction =
  | { readonly kind: 'ApplyNetworkPolicy'; readonly object: NetworkPolicy }
  | { readonly kind: 'ApplyDeployment'; readonly object: Deployment }
  /** A standby pod that has ended: its ReplicaSet replaces it, but nobody else removes it. */
  | { readonly kind: 'DeletePod'; readonly pod: Pod; readonly reason: string };

export interface PoolDecision {
  /** In this order: no pod starts before the policy that shuts its network. */
  readonly actions: readonly PoolAction[];
  readonly status: SandboxPoolStatus;
  /** Nothing tells when what is in the way has gone. */
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
  const status = nextStatus(observed, obstacle, now);
  if (obstacle !== undefined) return { actions: [], status, requeueAfterMs: OBSTACLE_MS };
  return { actions: [...applies(observed), ...endedPods(observed.pods)], status };
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

function applies({ pool, deployment, networkPolicy }: Observed): readonly PoolAction[] {
  const actions: PoolAction[] = [];
  const policy = networkPolicyFor(pool);
  if (!covers(networkPolicy, policy)) actions.push({ kind: 'ApplyNetworkPolicy', object: policy });
  if (pool.spec.pod !== undefined) {
    const wanted = deploymentFor(pool, pool.spec.pod);
    if (!covers(deployment, wanted)) actions.push({ kind: 'ApplyDeployment', object: wanted });
  }
  return actions;
}

function endedPods(pods: readonly Pod[]): readonly PoolAction[] {
  return pods.flatMap((pod): readonly PoolAction[] => {
    const phase = pod.status?.phase;
    const ended = phase === 'Failed' || phase === 'Succeeded';
    if (
      !ended ||
      pod.metadata.labels?.[LABELS.role] !== 'standby' ||
      pod.metadata.deletionTimestamp !== undefined
    )
      return [];
    const problem = podProblem(pod);
    return [{ kind: 'DeletePod', pod, reason: problem ? `${problem.reason}: ${problem.message}` : phase }];
  });
}

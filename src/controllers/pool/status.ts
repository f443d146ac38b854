import { carriesProof, isEgressProven } from '../../crds/egress.ts';
import { lingers } from '../../crds/lingering.ts';
import { type Condition, LABELS } from '../../crds/meta.ts';
import type { SandboxPool, SandboxPoolStatus } from '../../crds/sandbox-pool.ts';
import { clip } from '../../crds/shapes.ts';
import type { Pod } from '../../kube/kinds.ts';
import { isUsable, type PodProblem, podProblem } from '../../kube/pod-state.ts';
import { egressCondition } from './egress/condition.ts';
import { standbySelector } from './manifests.ts';
import type { Observed } from './observe.ts';
import { type Setback, setbackProblem } from './setback.ts';

/** Why nothing can be done for the pool at all. */
export interface Obstacle {
  readonly reason: string;
  readonly message: string;
}

/** The whole status, computed from what is seen; of the old one only the times of transitions are kept. Pure. */
export function nextStatus(
  observed: Observed,
  { obstacle, setback }: { readonly obstacle: Obstacle | undefined; readonly setback: Setback | undefined },
  now: Date,
): SandboxPoolStatus {
  const { pool } = observed;
  const counts = count(observed.pods, now);
  const facts = {
    pool,
    counts,
    problem: obstacle ?? setbackProblem(setback) ?? firstProblem(observed),
    rolledOut: isRolledOut(observed),
  };
  return {
    ...(pool.metadata.generation === undefined ? {} : { observedGeneration: pool.metadata.generation }),
    replicas: counts.standby,
    ready: counts.ready,
    claimed: counts.claimed,
    lingering: counts.lingering,
    ...(setback === undefined ? {} : { setback }),
    selector: standbySelector(pool),
    conditions: [ready(facts), progressing(facts), egressCondition(pool, observed.egress, counts.proven)].map(
      (said) => withTime(said, pool, now),
    ),
  };
}

interface Counts {
  readonly standby: number;
  readonly ready: number;
  /** Of those that stand by, usable or not: shown to reach no network. */
  readonly proven: number;
  readonly claimed: number;
  readonly lingering: number;
}

function count(pods: readonly Pod[], now: Date): Counts {
  const present = pods.filter(
    ({ metadata, status }) => metadata.deletionTimestamp === undefined && !hasEnded(status?.phase),
  );
  const standby = present.filter(({ metadata }) => metadata.labels?.[LABELS.role] === 'standby');
  const active = present.filter(({ metadata }) => metadata.labels?.[LABELS.role] === 'active');
  const lingering = active.filter(lingers);
  return {
    standby: standby.length,
    ready: standby.filter((pod) => isUsable(pod) && isEgressProven(pod, now)).length,
    proven: standby.filter((pod) => carriesProof(pod, now)).length,
    claimed: active.length - lingering.length,
    lingering: lingering.length,
  };
}

const hasEnded = (phase: string | undefined): boolean => phase === 'Failed' || phase === 'Succeeded';

/** What keeps standby pods from being, or from becoming ready: a pod's own problem, else the Deployment's. */
function firstProblem({ pods, deployment }: Observed): Obstacle | undefined {
  const broken = pods.flatMap((pod) => {
    const problem = pod.metadata.labels?.[LABELS.role] === 'standby' ? podProblem(pod) : undefined;
    return problem === undefined ? [] : [{ pod, problem }];
  });
  const first = broken.toSorted((a, b) => weight(a.problem) - weight(b.problem))[0];
  if (first !== undefined) {
    const others = broken.length > 1 ? ` (and ${broken.length - 1} more)` : '';
    return {
      reason: first.problem.reason,
      message: `pod ${first.pod.metadata.name}${others}: ${first.problem.message}`,
    };
  }
  // Pods that are refused do not exist to show a problem: quota, Pod Security, a webhook.
  const refused = deployment?.status?.conditions?.find(
    ({ type, status }) => type === 'ReplicaFailure' && status === 'True',
  );
  return (
    refused && { reason: refused.reason ?? 'ReplicaFailure', message: refused.message ?? 'pods are refused' }
  );
}

/** The problem that needs a person first. */
const weight = ({ kind }: PodProblem): number => ({ Permanent: 0, Pull: 1, Other: 2 })[kind];

function isRolledOut({ pool, deployment }: Observed): boolean {
  const status = deployment?.status;
  return (
    status !== undefined &&
    deployment?.metadata.generation === status.observedGeneration &&
    (status.updatedReplicas ?? 0) >= pool.spec.replicas &&
    (status.replicas ?? 0) <= pool.spec.replicas
  );
}

interface Facts {
  readonly pool: SandboxPool;
  readonly counts: Counts;
  readonly problem: Obstacle | undefined;
  readonly rolledOut: boolean;
}

type Said = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

function ready({ pool, counts, problem }: Facts): Said {
  const { replicas } = pool.spec;
  const have = `${counts.ready} of ${replicas} sandboxes can be claimed`;
  const but = problem === undefined ? have : `${have}; ${problem.reason}: ${problem.message}`;
  if (counts.ready > 0) return { type: 'Ready', status: 'True', reason: 'SandboxesReady', message: but };
  if (problem !== undefined) return { type: 'Ready', status: 'False', reason: problem.reason, message: but };
  if (replicas === 0)
    return { type: 'Ready', status: 'False', reason: 'ScaledToZero', message: 'spec.replicas is 0' };
  return { type: 'Ready', status: 'False', reason: 'Filling', message: have };
}

function progressing({ pool, counts, problem, rolledOut }: Facts): Said {
  const type = 'Progressing';
  if (rolledOut && counts.ready === pool.spec.replicas && counts.standby === counts.ready) {
    return { type, status: 'False', reason: 'Complete', message: `${counts.ready} sandboxes stand by` };
  }
  if (problem !== undefined)
    return { type, status: 'False', reason: problem.reason, message: problem.message };
  return {
    type,
    status: 'True',
    reason: rolledOut ? 'Filling' : 'RollingOut',
    message: `${counts.ready} of ${pool.spec.replicas} are ready`,
  };
}

function withTime(said: Said, pool: SandboxPool, now: Date): Condition {
  const before = pool.status?.conditions?.find(({ type }) => type === said.type);
  return {
    ...said,
    message: clip(said.message),
    lastTransitionTime: before?.status === said.status ? before.lastTransitionTime : now.toISOString(),
    ...(pool.metadata.generation === undefined ? {} : { observedGeneration: pool.metadata.generation }),
  };
}

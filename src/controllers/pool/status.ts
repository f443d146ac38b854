import { carriesProof, isEgressProven } from '../../crds/egress.ts';
import { lingers } from '../../crds/lingering.ts';
import { type Condition, type KubeObject, LABELS } from '../../crds/meta.ts';
import type { SandboxPool, SandboxPoolStatus } from '../../crds/sandbox-pool.ts';
import { clip } from '../../crds/shapes.ts';
import type { Pod } from '../../kube/kinds.ts';
import { isUsable, type PodProblem, podProblem } from '../../kube/pod-state.ts';
import { type EgressReport, egressCondition } from './egress/condition.ts';
import { standbySelector } from './manifests.ts';
import type { Observed } from './observe.ts';
import { type Setback, setbackProblem } from './setback.ts';

/** Why nothing can be done for the pool at all. */
export interface Obstacle {
  readonly reason: string;
  readonly message: string;
}

/** A pool as its status sees it, whatever its sandboxes are. */
export interface PoolView<T extends Sandboxed> {
  readonly pool: SandboxPool;
  /** Every sandbox of the pool, standing by or claimed, those that are going included. */
  readonly sandboxes: readonly T[];
  /** Whether commands can be run in it, as far as its object says. */
  isUsable(sandbox: T): boolean;
  /** What keeps it from becoming usable. */
  problem(sandbox: T): PodProblem | undefined;
  /** Sandboxes that are refused do not exist to show a problem: quota, Pod Security, a webhook. */
  readonly refusal: Obstacle | undefined;
  /** What stands by was made from what the pool says now. */
  readonly rolledOut: boolean;
  readonly egress: EgressReport | undefined;
}

type Sandboxed = KubeObject & { readonly status?: { readonly phase?: string } };

export const podView = (observed: Observed): PoolView<Pod> => ({
  pool: observed.pool,
  sandboxes: observed.pods,
  isUsable,
  problem: podProblem,
  refusal: refusalOf(observed),
  rolledOut: isRolledOut(observed),
  egress: observed.egress,
});

/** The whole status, computed from what is seen; of the old one only the times of transitions are kept. Pure. */
export function nextStatus<T extends Sandboxed>(
  view: PoolView<T>,
  { obstacle, setback }: { readonly obstacle: Obstacle | undefined; readonly setback: Setback | undefined },
  now: Date,
): SandboxPoolStatus {
  const { pool, rolledOut } = view;
  const counts = count(view, now);
  const facts = {
    pool,
    counts,
    problem: obstacle ?? setbackProblem(setback) ?? firstProblem(view),
    rolledOut,
  };
  return {
    ...(pool.metadata.generation === undefined ? {} : { observedGeneration: pool.metadata.generation }),
    replicas: counts.standby,
    ready: counts.ready,
    claimed: counts.claimed,
    lingering: counts.lingering,
    ...(setback === undefined ? {} : { setback }),
    selector: standbySelector(pool),
    conditions: [ready(facts), progressing(facts), egressCondition(pool, view.egress, counts.proven)].map(
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

function count<T extends Sandboxed>({ sandboxes, isUsable: usable }: PoolView<T>, now: Date): Counts {
  const present = sandboxes.filter(
    ({ metadata, status }) => metadata.deletionTimestamp === undefined && !hasEnded(status?.phase),
  );
  const standby = present.filter(({ metadata }) => metadata.labels?.[LABELS.role] === 'standby');
  const active = present.filter(({ metadata }) => metadata.labels?.[LABELS.role] === 'active');
  const lingering = active.filter(lingers);
  return {
    standby: standby.length,
    ready: standby.filter((pod) => usable(pod) && isEgressProven(pod, now)).length,
    proven: standby.filter((pod) => carriesProof(pod, now)).length,
    claimed: active.length - lingering.length,
    lingering: lingering.length,
  };
}

const hasEnded = (phase: string | undefined): boolean => phase === 'Failed' || phase === 'Succeeded';

/** What keeps standby sandboxes from being, or from becoming ready: one's own problem, else what makes them. */
function firstProblem<T extends Sandboxed>({
  sandboxes,
  problem,
  refusal,
}: PoolView<T>): Obstacle | undefined {
  const broken = sandboxes.flatMap((sandbox) => {
    const found = sandbox.metadata.labels?.[LABELS.role] === 'standby' ? problem(sandbox) : undefined;
    return found === undefined ? [] : [{ sandbox, found }];
  });
  const first = broken.toSorted((a, b) => weight(a.found) - weight(b.found))[0];
  if (first === undefined) return refusal;
  const others = broken.length > 1 ? ` (and ${broken.length - 1} more)` : '';
  const { kind, metadata } = first.sandbox;
  const noun = kind === 'VirtualMachineInstance' ? 'machine' : 'pod';
  return {
    reason: first.found.reason,
    message: `${noun} ${metadata.name}${others}: ${first.found.message}`,
  };
}

function refusalOf({ deployment }: Observed): Obstacle | undefined {
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

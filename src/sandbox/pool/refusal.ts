import { parseDuration } from '../../crds/duration.ts';
import { isEgressProven } from '../../crds/egress.ts';
import type { KubeObject } from '../../crds/meta.ts';
import type { SandboxPool } from '../../crds/sandbox-pool.ts';
import type { ClaimResult } from '../port.ts';
import { isStandby } from './candidates.ts';
import type { Claimable } from './claimable.ts';

export interface PoolView<T extends KubeObject> {
  readonly what: Claimable<T>;
  /** `namespace/name`, for the message. */
  readonly where: string;
  /** Undefined: there is no such pool. */
  readonly pool: SandboxPool | undefined;
  /** The pool's standby objects and perhaps others. */
  readonly objects: readonly T[];
}

export type Refusal = Exclude<ClaimResult, { readonly kind: 'Claimed' }>;

/**
 * Why a run gets no pod, and whether waiting can change it. `pullPatienceMs` is how long after a pod's creation
 * an image that cannot be pulled may still turn out well. Pure.
 */
export function refuse<T extends KubeObject>(
  { what, where, pool, objects }: PoolView<T>,
  wait: { readonly ahead: number; readonly waitedMs: number },
  limits: { readonly now: Date; readonly pullPatienceMs: number },
): Refusal {
  if (pool === undefined) {
    return {
      kind: 'Unavailable',
      message: `SandboxPool ${where} does not exist; create it or point the workflow at another one`,
    };
  }
  if (pool.spec.backend !== what.backend) {
    return {
      kind: 'Unavailable',
      message: `SandboxPool ${where} has backend ${pool.spec.backend}, and ${what.backend} is asked for`,
    };
  }
  const name = pool.metadata.name ?? '';
  const standby = objects.filter(
    (object) => isStandby(object, name) && object.metadata.deletionTimestamp === undefined,
  );
  const hopeless = standby.map((object) => hopelessProblem(what, object, limits));
  const [problem] = hopeless;
  if (problem !== undefined && hopeless.every((found) => found !== undefined)) {
    return { kind: 'Unavailable', message: `No sandbox of SandboxPool ${where} can start: ${problem}` };
  }
  const timeoutMs = parseDuration(pool.spec.claim.timeout);
  if (timeoutMs > 0 && wait.waitedMs >= timeoutMs) {
    return {
      kind: 'Unavailable',
      message: `No sandbox of SandboxPool ${where} became free within ${pool.spec.claim.timeout}`,
    };
  }
  if (pool.spec.replicas === 0) {
    return {
      kind: 'Waiting',
      message: `SandboxPool ${where} is scaled to 0 replicas; place ${wait.ahead + 1} in line`,
    };
  }
  const open = pool.status?.conditions?.find(({ type }) => type === 'EgressBlocked');
  if (open !== undefined && isOpen(pool)) {
    return {
      kind: 'Waiting',
      message: `SandboxPool ${where} hands nothing out: ${open.message}; place ${wait.ahead + 1} in line`,
    };
  }
  const unproven = standby.filter(
    (object) => what.isUsable(object) && !isEgressProven(object, limits.now),
  ).length;
  const because = unproven === 0 ? '' : ` (${unproven} stand by whose isolation is not proven yet)`;
  return {
    kind: 'Waiting',
    message: `No sandbox of SandboxPool ${where} is free${because}; place ${wait.ahead + 1} in line`,
  };
}

/** Whether a sandbox of the pool was found to reach a network. */
export const isOpen = (pool: SandboxPool | undefined): boolean =>
  pool?.status?.conditions?.some(({ type, status }) => type === 'EgressBlocked' && status === 'False') ??
  false;

function hopelessProblem<T extends KubeObject>(
  what: Claimable<T>,
  object: T,
  limits: { readonly now: Date; readonly pullPatienceMs: number },
): string | undefined {
  const problem = what.problem(object);
  if (problem === undefined || problem.kind === 'Other') return undefined;
  const ageMs = limits.now.getTime() - Date.parse(object.metadata.creationTimestamp ?? '');
  if (problem.kind === 'Pull' && !(ageMs >= limits.pullPatienceMs)) return undefined;
  return `${problem.reason}: ${problem.message}`;
}

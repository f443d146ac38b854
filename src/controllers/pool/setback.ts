import type { KubeObject } from '../../crds/meta.ts';
import type { SandboxPool, SandboxPoolStatus } from '../../crds/sandbox-pool.ts';
import { clip } from '../../crds/shapes.ts';
import type { PodProblem } from '../../kube/pod-state.ts';

export type Setback = NonNullable<SandboxPoolStatus['setback']>;

/** A pod that was evicted once is replaced at once; each time after that doubles the pause. */
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 5 * 60_000;
/** Twice the longest pause: what went well for so long counts as mended. */
const FORGOTTEN_MS = 10 * 60_000;

/**
 * What the pool remembers of standby pods that ended by themselves (evicted, rejected by their node, out of memory
 * without a restart). A ReplicaSet replaces such a pod at once, for ever; so the pool wants fewer for a pause.
 * `ended`: those that were not seen before. Pure.
 */
export function nextSetback<T extends KubeObject>(
  before: Setback | undefined,
  ended: readonly T[],
  { replicas, now }: { readonly replicas: number; readonly now: Date },
  problemOf: (sandbox: T) => PodProblem | undefined,
): Setback | undefined {
  const known = before !== undefined && msSince(before.time, now) < FORGOTTEN_MS ? before : undefined;
  const [first] = ended;
  if (first === undefined) {
    if (known === undefined || known.held === 0 || isPaused(known, now)) return known;
    return { ...known, held: 0 };
  }
  const paused = known !== undefined && isPaused(known, now);
  const failures = paused ? known.failures : (known?.failures ?? 0) + 1;
  const retryAt = paused ? known.retryAt : new Date(now.getTime() + pauseMs(failures)).toISOString();
  const held = (paused ? known.held : 0) + ended.length;
  const problem = problemOf(first);
  return {
    failures,
    held: failures === 1 ? 0 : Math.min(held, replicas),
    pod: first.metadata.name ?? '',
    reason: problem?.reason ?? 'Ended',
    message: clip(problem?.message ?? 'it ended by itself'),
    time: now.toISOString(),
    retryAt,
  };
}

/** Milliseconds until the pool wants all of its pods again; undefined when it does now. */
export function pauseLeft(setback: Setback | undefined, now: Date): number | undefined {
  if (setback === undefined || setback.held === 0) return undefined;
  return Math.max(0, Date.parse(setback.retryAt) - now.getTime());
}

/** What stands by while a pause lasts. */
export const heldReplicas = ({ spec }: SandboxPool, setback: Setback | undefined): number =>
  Math.max(0, spec.replicas - (setback?.held ?? 0));

export function setbackProblem(
  setback: Setback | undefined,
): { readonly reason: string; readonly message: string } | undefined {
  if (setback === undefined || setback.held === 0) return undefined;
  const { failures, held, pod, reason, message, retryAt } = setback;
  return {
    reason,
    message: `pod ${pod} ended by itself: ${message}; ${failures} times by now, so ${held} not replaced before ${retryAt}`,
  };
}

const pauseMs = (failures: number): number =>
  failures <= 1 ? 0 : Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 2));

const isPaused = ({ retryAt }: Setback, now: Date): boolean => Date.parse(retryAt) > now.getTime();
const msSince = (time: string, now: Date): number => now.getTime() - Date.parse(time);

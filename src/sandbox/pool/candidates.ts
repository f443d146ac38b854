import { isEgressProven } from '../../crds/egress.ts';
import { standbyLabels } from '../../crds/labels.ts';
import { type KubeObject, LABELS } from '../../crds/meta.ts';
import type { Claimable } from './claimable.ts';

export function isStandby({ metadata }: KubeObject, pool: string): boolean {
  return Object.entries(standbyLabels(pool)).every(([name, value]) => metadata.labels?.[name] === value);
}

/** Objects that may be claimed: standing by, usable, proven to reach no network, and carrying no run. */
export function claimable<T extends KubeObject>(
  { isUsable }: Claimable<T>,
  objects: readonly T[],
  pool: string,
  now: Date,
): readonly T[] {
  return objects.filter(
    (object) =>
      isStandby(object, pool) &&
      isUsable(object) &&
      isEgressProven(object, now) &&
      object.metadata.labels?.[LABELS.run] === undefined,
  );
}

/**
 * The pod that this run should try first. Runs prefer different pods, so that those that claim at the same
 * moment seldom meet; the same run prefers the same pod, so that two claims for it meet and one is refused.
 */
export function preferred<T extends KubeObject>(pods: readonly T[], runUid: string): T | undefined {
  let best: T | undefined;
  let bestScore = -1;
  for (const pod of pods) {
    const score = fnv1a(`${runUid}/${pod.metadata.uid}`);
    if (score > bestScore) [best, bestScore] = [pod, score];
  }
  return best;
}

/** 32-bit FNV-1a: spreads well enough here, and costs nothing for a list of pods. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  return hash >>> 0;
}

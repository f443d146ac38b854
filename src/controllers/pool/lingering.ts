import { lingers, reapTime } from '../../crds/lingering.ts';
import type { KubeObject } from '../../crds/meta.ts';

/** Of the sandboxes that linger in one pool those over `max`, which go first. Pure. */
export function overMax<T extends KubeObject>(sandboxes: readonly T[], max: number): readonly T[] {
  const oldestFirst = sandboxes.filter(lingers).toSorted((a, b) => reapTime(a) - reapTime(b));
  return oldestFirst.slice(0, Math.max(0, oldestFirst.length - max));
}

export const evictionMessage = (max: number): string =>
  `its pool keeps at most ${max} sandboxes for replies, and it was the oldest`;

import { describe, expect, it } from 'vitest';
import { standbyLabels } from '../../crds/labels.ts';
import { ANNOTATIONS, LABELS } from '../../crds/meta.ts';
import type { Pod } from '../../kube/kinds.ts';
import { claimable, preferred } from './candidates.ts';
import { PODS } from './claimable.ts';

function aPod(
  name: string,
  rest: { readonly status?: Pod['status']; readonly metadata?: Partial<Pod['metadata']> } = {},
): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...{ name, uid: `uid-${name}`, labels: standbyLabels('warm') },
      annotations: { [ANNOTATIONS.egressBlockedUntil]: '2026-01-01T00:05:00Z' },
      ...rest.metadata,
    },
    spec: { containers: [{ name: 'sandbox' }] },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [{ name: 'sandbox', ready: true, restartCount: 0, state: { running: {} } }],
      ...rest.status,
    },
  };
}
const now = new Date('2026-01-01T00:00:00Z');
const names = (pods: readonly Pod[]) => pods.map(({ metadata }) => metadata.name);

describe('BR-38: what may be claimed', () => {
  const p1 = aPod('p1', { status: { conditions: [{ type: 'Ready', status: 'False' }] } });
  const p2 = aPod('p2', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } });
  const p3 = aPod('p3', { status: { phase: 'Pending' } });
  const p4 = aPod('p4');
  it('is the pod that runs, is ready and stays', () => {
    expect(names(claimable(PODS, [p1, p2, p3, p4], 'warm', now))).toEqual(['p4']);
  });
  it('is nothing when none does', () => {
    expect(claimable(PODS, [p1, p2, p3], 'warm', now)).toEqual([]);
  });
  it('is no pod whose network was not shown to be shut, or whose proof is too old', () => {
    const unproven = aPod('p', { metadata: { annotations: {} } });
    const old = aPod('p', {
      metadata: { annotations: { [ANNOTATIONS.egressBlockedUntil]: '2025-12-31T23:59:59Z' } },
    });
    expect(claimable(PODS, [unproven, old], 'warm', now)).toEqual([]);
  });
  it.each([
    ['of another pool', { [LABELS.pool]: 'cold', [LABELS.role]: 'standby' }],
    ['that is active', { [LABELS.pool]: 'warm', [LABELS.role]: 'active' }],
    ['that stands by but names a run', { ...standbyLabels('warm'), [LABELS.run]: 'x' }],
    ['without labels', {}],
  ])('is no pod %s', (_name, labels) => {
    expect(claimable(PODS, [aPod('p', { metadata: { labels } })], 'warm', now)).toEqual([]);
  });
});

describe('the preferred pod', () => {
  const pods = Array.from({ length: 10 }, (_, at) => aPod(`p${at}`));
  it('is the same for the same run, in whatever order the pods come', () => {
    expect(preferred(pods.toReversed(), 'run-a')).toBe(preferred(pods, 'run-a'));
  });
  it('spreads runs over the pods', () => {
    const chosen = new Set(Array.from({ length: 100 }, (_, at) => preferred(pods, `run-${at}`)));
    expect(chosen.size).toBeGreaterThanOrEqual(8);
  });
  it('is none of none', () => {
    expect(preferred([], 'run-a')).toBeUndefined();
  });
});

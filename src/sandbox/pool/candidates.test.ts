import { describe, expect, it } from 'vitest';
import { standbyLabels } from '../../crds/labels.ts';
import { LABELS } from '../../crds/meta.ts';
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
    metadata: { name, uid: `uid-${name}`, labels: standbyLabels('warm'), ...rest.metadata },
    spec: { containers: [{ name: 'sandbox' }] },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [{ name: 'sandbox', ready: true, restartCount: 0, state: { running: {} } }],
      ...rest.status,
    },
  };
}
const names = (pods: readonly Pod[]) => pods.map(({ metadata }) => metadata.name);

describe('BR-38: what may be claimed', () => {
  const p1 = aPod('p1', { status: { conditions: [{ type: 'Ready', status: 'False' }] } });
  const p2 = aPod('p2', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } });
  const p3 = aPod('p3', { status: { phase: 'Pending' } });
  const p4 = aPod('p4');
  it('is the pod that runs, is ready and stays', () => {
    expect(names(claimable(PODS, [p1, p2, p3, p4], 'warm'))).toEqual(['p4']);
  });
  it('is nothing when none does', () => {
    expect(claimable(PODS, [p1, p2, p3], 'warm')).toEqual([]);
  });
  it.each([
    ['of another pool', { [LABELS.pool]: 'cold', [LABELS.role]: 'standby' }],
    ['that is active', { [LABELS.pool]: 'warm', [LABELS.role]: 'active' }],
    ['that stands by but names a run', { ...standbyLabels('warm'), [LABELS.run]: 'x' }],
    ['without labels', {}],
  ])('is no pod %s', (_name, labels) => {
    expect(claimable(PODS, [aPod('p', { metadata: { labels } })], 'warm')).toEqual([]);
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

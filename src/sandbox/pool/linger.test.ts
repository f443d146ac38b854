import { describe, expect, it } from 'vitest';
import { ANNOTATIONS, LABELS } from '../../crds/meta.ts';
import type { Pod } from '../../kube/kinds.ts';
import type { SandboxRequest } from '../port.ts';
import { PODS } from './claimable.ts';
import { lingeringFor, reclaimable, wasReclaimed } from './linger.ts';
import { claimPatch, lingerPatch } from './patch.ts';

const now = new Date('2026-01-01T00:00:00Z');
const later = '2026-01-01T00:05:00Z';
const session = { sessionId: 's-1', runNamespace: 'agents' };
const request: SandboxRequest = {
  runUid: 'run-2',
  runName: 'second',
  ...session,
  workflow: 'analyze',
  savedBy: 'run-1',
  pool: { namespace: 'sandboxes', name: 'warm' },
  epoch: 1,
  labels: {},
  reapBy: new Date('2026-01-01T00:40:00Z'),
};

/** A pod that lingers for `request`'s session with the save of run-1. */
function lingers(
  changes: {
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
    readonly status?: Pod['status'];
  } = {},
): Pod {
  const { labels, annotations, deletionTimestamp, status } = changes;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'p',
      uid: 'u',
      resourceVersion: '7',
      labels: { [LABELS.pool]: 'warm', [LABELS.role]: 'active', [LABELS.session]: 's-1', ...labels },
      annotations: {
        [ANNOTATIONS.sessionId]: 's-1',
        [ANNOTATIONS.savedBy]: 'run-1',
        [ANNOTATIONS.reapBy]: later,
        [ANNOTATIONS.runName]: 'agents/first',
        ...annotations,
      },
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
    spec: { containers: [] },
    status: status ?? {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [{ name: 'sandbox', ready: true, restartCount: 0, state: { running: {} } }],
    },
  };
}

describe('a lingering sandbox', () => {
  it('is found by the next run of its session', () => {
    const pod = lingers();
    expect(reclaimable(PODS, [pod], request, now)).toBe(pod);
  });

  it.each<[string, Pod]>([
    ['of another session', lingers({ annotations: { [ANNOTATIONS.sessionId]: 's-2' } })],
    [
      'of a session of that name in another namespace',
      lingers({ annotations: { [ANNOTATIONS.runName]: 'others/first' } }),
    ],
    ['with an older save of the session', lingers({ annotations: { [ANNOTATIONS.savedBy]: 'run-0' } })],
    ['of another pool', lingers({ labels: { [LABELS.pool]: 'cold' } })],
    ['that a run owns', lingers({ labels: { [LABELS.run]: 'run-9' } })],
    ['that stands by', lingers({ labels: { [LABELS.role]: 'standby' } })],
    ['whose time is over', lingers({ annotations: { [ANNOTATIONS.reapBy]: now.toISOString() } })],
    ['without a time', lingers({ annotations: { [ANNOTATIONS.reapBy]: '' } })],
    ['that is being deleted', lingers({ deletionTimestamp: later })],
    ['that has ended', lingers({ status: { phase: 'Failed', reason: 'Evicted' } })],
  ])('%s is not taken', (_, pod) => {
    expect(reclaimable(PODS, [pod], request, now)).toBeUndefined();
  });

  it('is not taken by a run that goes on with no session, or with one that was never saved', () => {
    const { savedBy: _, ...fresh } = request;
    expect(reclaimable(PODS, [lingers()], fresh, now)).toBeUndefined();
    expect(wasReclaimed(lingers(), fresh)).toBe(false);
  });

  it('is the run’s no more once it lingers, and nobody’s to reclaim once a run has it', () => {
    const kept = lingerPatch(lingers(), { ...session, runUid: 'run-1', namespace: 'n' }, now);
    expect(kept.body).toMatchObject({
      metadata: {
        uid: 'u',
        resourceVersion: '7',
        labels: { [LABELS.run]: null },
        annotations: { [ANNOTATIONS.sessionId]: 's-1', [ANNOTATIONS.reapBy]: now.toISOString() },
      },
    });
    expect(claimPatch(lingers(), request, now).body).toMatchObject({
      metadata: {
        uid: 'u',
        resourceVersion: '7',
        labels: { [LABELS.run]: 'run-2' },
        annotations: { [ANNOTATIONS.sessionId]: null, [ANNOTATIONS.reapBy]: request.reapBy.toISOString() },
      },
    });
  });

  it('is known as reclaimed by its new run, also after a restart', () => {
    const { [ANNOTATIONS.sessionId]: _, ...annotations } = lingers().metadata.annotations ?? {};
    const owned = { ...lingers(), metadata: { ...lingers().metadata, annotations } };
    expect(wasReclaimed(owned, request)).toBe(true);
    expect(lingeringFor([owned], session)).toEqual([]);
  });
});

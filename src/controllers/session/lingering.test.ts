import { expect, it } from 'vitest';
import { aSession } from '../../../test/builders/session.ts';
import { ANNOTATIONS, type KubeObject, LABELS } from '../../crds/meta.ts';
import { lingeringFor } from './reconcile.ts';

const until = '2026-01-01T00:05:00.000Z';

/** A sandbox that lingers for the session of `aSession`. */
const aSandbox = (changes: Partial<KubeObject['metadata']> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'p-1',
    namespace: 'sandboxes',
    labels: { [LABELS.role]: 'active', [LABELS.session]: 's-1' },
    annotations: {
      [ANNOTATIONS.sessionId]: 's-1',
      [ANNOTATIONS.runName]: 'agents/run-1',
      [ANNOTATIONS.reapBy]: until,
    },
    ...changes,
  },
});

it('a session shows the sandbox that lingers for it', () => {
  expect(lingeringFor(aSession(), [aSandbox()])).toEqual({ pod: 'p-1', namespace: 'sandboxes', until });
});

it('of two sandboxes a session shows the one that goes last', () => {
  const older = { ...aSandbox().metadata.annotations, [ANNOTATIONS.reapBy]: '2026-01-01T00:01:00Z' };
  const sandboxes = [aSandbox({ name: 'older', annotations: older }), aSandbox()];
  expect(lingeringFor(aSession(), sandboxes)?.pod).toBe('p-1');
});

it.each<[string, Partial<KubeObject['metadata']>]>([
  ['that is being deleted', { deletionTimestamp: until }],
  ['that a run owns', { labels: { [LABELS.role]: 'active', [LABELS.run]: 'r' } }],
  ['of another session', { annotations: { [ANNOTATIONS.sessionId]: 's-2', [ANNOTATIONS.reapBy]: until } }],
  [
    'of a session of that name elsewhere',
    {
      annotations: {
        [ANNOTATIONS.sessionId]: 's-1',
        [ANNOTATIONS.runName]: 'elsewhere/run-1',
        [ANNOTATIONS.reapBy]: until,
      },
    },
  ],
])('a session does not show a sandbox %s', (_, changes) => {
  expect(lingeringFor(aSession(), [aSandbox(changes)])).toBeUndefined();
});

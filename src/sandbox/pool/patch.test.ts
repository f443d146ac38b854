import { describe, expect, it } from 'vitest';
import { ANNOTATIONS, LABELS } from '../../crds/meta.ts';
import type { Pod } from '../../kube/kinds.ts';
import type { SandboxRequest } from '../port.ts';
import { adoptionPatch, claimPatch, epochOf } from './patch.ts';

const now = new Date('2026-01-01T00:00:00Z');
const aPod = (annotations: Readonly<Record<string, string>> = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', uid: 'u', resourceVersion: '7', annotations },
  spec: { containers: [] },
});
const request: SandboxRequest = {
  runUid: 'run-uid',
  runName: 'run',
  runNamespace: 'agents',
  workflow: 'w'.repeat(100),
  pool: { namespace: 'sandboxes', name: 'warm' },
  epoch: 3,
  labels: { extra: 'not a label value!', [LABELS.role]: 'standby', [LABELS.run]: 'other' },
  reapBy: new Date('2026-01-01T00:40:00Z'),
};
const metadataOf = (patch: { readonly body: unknown }) =>
  (patch.body as { metadata: { labels: Record<string, string>; annotations: Record<string, string> } })
    .metadata; // what claimPatch builds

describe('a claim', () => {
  it('is guarded, and takes the owner away', () => {
    expect(claimPatch(aPod(), request, now)).toMatchObject({
      type: 'merge',
      body: { metadata: { uid: 'u', resourceVersion: '7', ownerReferences: null } },
    });
  });
  it('has labels that the API server takes, and no label of the request replaces its own', () => {
    const { labels } = metadataOf(claimPatch(aPod(), request, now));
    expect(labels[LABELS.role]).toBe('active');
    expect(labels[LABELS.run]).toBe('run-uid');
    for (const value of Object.values(labels))
      expect(value).toMatch(/^(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?$/);
  });
  it.each([
    ['what the run asks for', {}, '2026-01-01T00:40:00.000Z'],
    ['at most what the pool allows', { [ANNOTATIONS.maxActive]: '30m' }, '2026-01-01T00:30:00.000Z'],
    [
      'what the run asks for when the pool allows more',
      { [ANNOTATIONS.maxActive]: '2h' },
      '2026-01-01T00:40:00.000Z',
    ],
    [
      'what the run asks for when the pod says nonsense',
      { [ANNOTATIONS.maxActive]: 'soon' },
      '2026-01-01T00:40:00.000Z',
    ],
  ])('ends at %s', (_name, annotations, expected) => {
    expect(metadataOf(claimPatch(aPod(annotations), request, now)).annotations[ANNOTATIONS.reapBy]).toBe(
      expected,
    );
  });
});

it('a take-over changes the epoch and leaves the deadline', () => {
  expect(adoptionPatch(aPod(), request)).toEqual({
    type: 'merge',
    body: { metadata: { uid: 'u', resourceVersion: '7', annotations: { [ANNOTATIONS.epoch]: '3' } } },
  });
});

it.each([
  ['2', 2],
  ['0', 0],
  ['-1', 0],
  ['x', 0],
])('the epoch of %j is %d', (text, expected) => {
  expect(epochOf(aPod({ [ANNOTATIONS.epoch]: text }))).toBe(expected);
});

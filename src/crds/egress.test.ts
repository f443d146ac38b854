import { expect, it } from 'vitest';
import { isEgressProven } from './egress.ts';
import { ANNOTATIONS } from './meta.ts';

const NOW = new Date('2026-01-01T00:00:00Z');
const LATER = '2026-01-01T00:01:00.000Z';

const { egressBlockedUntil, egressOpen, egressProbe } = ANNOTATIONS;

it.each<[string, Record<string, string>, boolean]>([
  ['without any mark', {}, false],
  ['proven until later', { [egressBlockedUntil]: LATER }, true],
  ['proven until a time that is over', { [egressBlockedUntil]: '2025-12-31T23:59:59Z' }, false],
  ['with something else in the place of the time', { [egressBlockedUntil]: 'true' }, false],
  ['proven, but found open', { [egressBlockedUntil]: LATER, [egressOpen]: 'Kubelet' }, false],
  ['of a pool without probe', { [egressProbe]: 'disabled' }, true],
  ['of a pool without probe, but found open', { [egressProbe]: 'disabled', [egressOpen]: 'Dns' }, false],
  ['with another word about the probe', { [egressProbe]: 'required' }, false],
])('a sandbox %s: %j counts as proven: %s', (_, annotations, proven) => {
  expect(isEgressProven({ apiVersion: 'v1', kind: 'Pod', metadata: { annotations } }, NOW)).toBe(proven);
});

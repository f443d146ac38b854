import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ANNOTATIONS, type KubeObject, LABELS } from '../../crds/meta.ts';
import { overMax } from './lingering.ts';

const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();

const lingering = (
  name: string,
  minute: number,
  labels: Readonly<Record<string, string>> = {},
): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name,
    labels: { [LABELS.role]: 'active', ...labels },
    annotations: { [ANNOTATIONS.sessionId]: name, [ANNOTATIONS.reapBy]: at(minute) },
  },
});
const names = (sandboxes: readonly KubeObject[]) => sandboxes.map(({ metadata }) => metadata.name);

it('the oldest go when a pool has more than it keeps', () => {
  const sandboxes = [lingering('c', 3), lingering('a', 1), lingering('d', 4), lingering('b', 2)];
  expect(names(overMax(sandboxes, 2))).toEqual(['a', 'b']);
  expect(names(overMax(sandboxes, 4))).toEqual([]);
  expect(names(overMax(sandboxes, 0))).toEqual(['a', 'b', 'c', 'd']);
});

it('what a run owns is not counted and never goes', () => {
  const sandboxes = [lingering('owned', 0, { [LABELS.run]: 'r' }), lingering('a', 1), lingering('b', 2)];
  expect(names(overMax(sandboxes, 1))).toEqual(['a']);
});

it('never leaves more than the pool keeps, nor takes one that is younger than one it leaves', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 50 })),
      fc.integer({ min: 0, max: 10 }),
      (minutes, max) => {
        const sandboxes = minutes.map((minute, index) => lingering(`p${index}`, minute));
        const gone = overMax(sandboxes, max);
        const left = sandboxes.filter((sandbox) => !gone.includes(sandbox));
        expect(left).toHaveLength(Math.min(max, sandboxes.length));
        const youngestGone = Math.max(
          ...gone.map(({ metadata }) => Date.parse(metadata.annotations?.[ANNOTATIONS.reapBy] ?? '')),
        );
        const oldestLeft = Math.min(
          ...left.map(({ metadata }) => Date.parse(metadata.annotations?.[ANNOTATIONS.reapBy] ?? '')),
        );
        expect(gone.length === 0 || left.length === 0 || youngestGone <= oldestLeft).toBe(true);
      },
    ),
  );
});

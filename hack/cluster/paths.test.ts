import { expect, test } from 'vitest';
import { clusterDir, clustersRoot } from './paths.ts';

test.each(['dev', 'test-123', 'a', 'x'.repeat(40)])('%s is a name for a cluster', (name) => {
  expect(clusterDir(name)).toBe(`${clustersRoot()}/${name}`);
});

test.each(['', '../x', 'a/b', 'A', '-a', 'a-', 'x'.repeat(41), 'a b'])(
  '"%s" is refused as a name',
  (name) => {
    expect(() => clusterDir(name)).toThrow(/use 1 to 40/);
  },
);

import { expect, it } from 'vitest';
import { nearest } from './nearest.ts';

it.each([
  ['max_iteration', 'max_iterations'],
  ['maxIterations', 'max_iterations'],
  ['internal-notes', 'internal_notes'],
  ['promt', 'prompt'],
  ['colour', undefined],
  ['x', undefined],
])('a key %s is taken for %s', (word, expected) => {
  expect(nearest(word, ['max_iterations', 'max_runs_per_mr', 'internal_notes', 'prompt'])).toBe(expected);
});

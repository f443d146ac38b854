import { expect, it } from 'vitest';
import { covers } from './drift.ts';

it.each<[string, unknown, unknown, boolean]>([
  ['the same', { a: 1 }, { a: 1 }, true],
  ['more than wanted', { a: 1, b: 2 }, { a: 1 }, true],
  ['another value', { a: 1 }, { a: 2 }, false],
  ['a missing field', {}, { a: 1 }, false],
  ['nothing at all', undefined, { a: 1 }, false],
  ['a deeper difference', { a: { b: [{ c: 1 }] } }, { a: { b: [{ c: 2 }] } }, false],
  ['defaults inside a list', { a: [{ b: 1, filled: true }] }, { a: [{ b: 1 }] }, true],
  ['an item more', { egress: [{}] }, { egress: [] }, false],
  ['an item less', { a: [1] }, { a: [1, 2] }, false],
  ['an absent empty list', {}, { egress: [] }, true],
  ['a list where an object is wanted', { a: [] }, { a: {} }, false],
])('%s', (_name, actual, desired, expected) => {
  expect(covers(actual, desired)).toBe(expected);
});

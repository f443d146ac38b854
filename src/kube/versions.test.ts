import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compareVersions } from './versions.ts';

test('decimal versions are ordered as numbers, whatever their length', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 80n }), fc.bigInt({ min: 0n, max: 2n ** 80n }), (a, b) => {
      const order = compareVersions(String(a), String(b)) ?? Number.NaN;
      expect(Math.sign(order)).toBe(a < b ? -1 : a > b ? 1 : 0);
    }),
  );
});

test.each([
  ['abc', '1'],
  ['01', '1'],
  [undefined, '1'],
  ['', '1'],
])('%j and %j cannot be ordered', (a, b) => {
  expect(compareVersions(a, b)).toBeUndefined();
});

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { labelSelector, labelValue } from './labels.ts';

it.each([
  ['', ''],
  ['analyze-failures', 'analyze-failures'],
  ['a.b_c-d', 'a.b_c-d'],
  ['x'.repeat(63), 'x'.repeat(63)],
])('%j stays as it is', (name, expected) => {
  expect(labelValue(name)).toBe(expected);
});

it('any text becomes a value that the API server takes', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 300 }), (name) => {
      expect(labelValue(name)).toMatch(/^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/);
      expect(labelValue(name).length).toBeLessThanOrEqual(63);
    }),
  );
});

it('long names that begin alike keep different values', () => {
  expect(labelValue(`${'x'.repeat(80)}a`)).not.toBe(labelValue(`${'x'.repeat(80)}b`));
});

it('a selector joins what must all hold', () => {
  expect(labelSelector({ a: 'b', 'c/d': 'e' })).toBe('a=b,c/d=e');
});

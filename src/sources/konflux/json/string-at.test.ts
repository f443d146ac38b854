import fc from 'fast-check';
import { expect, it } from 'vitest';
import { stringAt } from './string-at.ts';

const name = fc.constantFrom('uid', 'metadata', 'labels', 'a.b/c', 'q"\\', 'é');
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom<unknown>('text', '}', '"],', 'süß \\', '', 1, -2.5e3, true, false, null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4 }),
  ),
})).value;

it('finds what JSON.parse finds', () => {
  fc.assert(
    fc.property(
      json,
      fc.array(name, { maxLength: 4 }),
      fc.constantFrom(undefined, 2),
      (value, path, indent) => {
        const expected = path.reduce<unknown>(
          (at, key) =>
            typeof at === 'object' && at !== null && !Array.isArray(at) && Object.hasOwn(at, key)
              ? Object.entries(at).find(([one]) => one === key)?.[1]
              : undefined,
          value,
        );
        const text = JSON.stringify(value, undefined, indent);
        expect(stringAt(Buffer.from(text), path)).toBe(typeof expected === 'string' ? expected : undefined);
      },
    ),
    { numRuns: 2000 },
  );
});

it('reads from bytes that lie in the middle of others', () => {
  const all = Buffer.from('xx{"metadata":{"uid":"1"}}yy');
  expect(stringAt(all.subarray(2, -2), ['metadata', 'uid'])).toBe('1');
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formsOf, knownValues } from './known-values.ts';

const SECRET = 'glpat-a/b+c"d<é>?~';

test.each([
  ['as it is', (secret: string) => secret],
  ['in base64', (secret: string) => Buffer.from(secret).toString('base64')],
  [
    'in base64 without padding',
    (secret: string) => Buffer.from(secret).toString('base64').replace(/=+$/, ''),
  ],
  ['in base64url', (secret: string) => Buffer.from(secret).toString('base64url')],
  ['in hex', (secret: string) => Buffer.from(secret).toString('hex')],
  ['in capital hex', (secret: string) => Buffer.from(secret).toString('hex').toUpperCase()],
  ['URL-encoded', encodeURIComponent],
  ['URL-encoded throughout', (secret: string) => Buffer.from(secret).toString('hex').replace(/../g, '%$&')],
  ['JSON-escaped', (secret: string) => JSON.stringify(secret).slice(1, -1)],
  ['in HTML', (secret: string) => secret.replace(/"/g, '&quot;').replace(/</g, '&lt;').replace(/>/g, '&gt;')],
])('a secret is found %s', (_how, write) => {
  const known = knownValues(formsOf(SECRET));
  expect(known.replaced(`before ${write(SECRET)} after`, '[x]')).toBe('before [x] after');
});

test.each(['a', 'ab', 'abc', 'user:'])(
  'base64 of %s and the secret shows less than two of its bytes',
  (before) => {
    const encoded = Buffer.from(`${before}${SECRET} and more`).toString('base64');
    const clean = knownValues(formsOf(SECRET)).replaced(encoded, '*');
    const at = clean.indexOf('*');
    expect(at).toBeGreaterThanOrEqual(0);
    // Six bits a character: what stands before the gap tells of the text before it and a part of one byte.
    expect(at * 6).toBeLessThan((before.length + 1) * 8);
    expect((clean.length - at - 1) * 6).toBeLessThan((' and more'.length + 2) * 8 + 6);
  },
);

test('values that overlap leave no remainder of either', () => {
  const known = knownValues(['xx-secret', 'secret-and-more', 'secret']);
  expect(known.replaced('a xx-secret-and-more b secret', '*')).toBe('a * b *');
  expect(known.replaced('secretsecret', '*')).toBe('**');
});

test('short values are left: they stand in ordinary text', () => {
  expect(knownValues(['abc', '']).replaced('abc abc', '*')).toBe('abc abc');
});

test('what is found is what a search for each value finds', () => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 6, maxLength: 9 });
  fc.assert(
    fc.property(
      fc.array(letters, { maxLength: 5 }),
      fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 60 }),
      (values, text) => {
        const covered = new Set<number>();
        for (const value of values)
          for (let at = text.indexOf(value); at >= 0; at = text.indexOf(value, at + 1))
            for (let index = at; index < at + value.length; index++) covered.add(index);
        const left = [...text].filter((_letter, index) => !covered.has(index)).join('');
        expect(knownValues(values).replaced(text, '')).toBe(left);
      },
    ),
  );
});

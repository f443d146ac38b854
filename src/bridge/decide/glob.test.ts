import fc from 'fast-check';
import { expect, it } from 'vitest';
import { matchesGlob } from './glob.ts';

it.each([
  ['', '', true],
  ['', 'a', false],
  ['*', '', true],
  ['*', 'anything/at all', true],
  ['main', 'main', true],
  ['main', 'Main', false],
  ['main', 'main2', false],
  ['release-*', 'release-1.2', true],
  ['release-*', 'my-release-1.2', false],
  ['*-bot', 'renovate-bot', true],
  ['*-bot', 'renovate-bot-2', false],
  ['renovate/*', 'renovate/npm/zod-4', true],
  ['v?', 'v1', true],
  ['v?', 'v12', false],
  ['v?', 'v', false],
  ['?', '🐦', true],
  ['a*b*c', 'a-b-b-c', true],
  ['a*b*c', 'a-c-b', false],
  ['a.c', 'abc', false],
  ['[ab]', 'a', false],
])('glob %j against %j: %s', (pattern, text, expected) => {
  expect(matchesGlob(pattern, text)).toBe(expected);
});

it('agrees with the regular expression that says the same', () => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'b', '*', '?'), maxLength: 8 });
  const words = fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 8 });
  fc.assert(
    fc.property(letters, words, (pattern, text) => {
      const regex = new RegExp(`^${pattern.replaceAll('*', '[^]*').replaceAll('?', '[^]')}$`);
      expect(matchesGlob(pattern, text)).toBe(regex.test(text));
    }),
  );
});

it('is not stalled by a pattern full of stars', () => {
  expect(matchesGlob(`${'*a'.repeat(200)}b`, 'a'.repeat(2_000))).toBe(false);
}, 2_000);

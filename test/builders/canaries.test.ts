import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { ENCODINGS, leaks } from './canaries.ts';

const secrets = { action: 'glpat-canary/action+0001', tool: 'glpat-canary?tool~0002' };

test('there are twelve ways to write a secret', () => {
  expect(Object.keys(ENCODINGS)).toHaveLength(12);
});

test.each(Object.entries(ENCODINGS))('a secret is found in %s, and only that one', (_name, write) => {
  const log = `{"level":30,"msg":"before ${write(secrets.action)} after"}`;
  expect(leaks({ log, notes: 'All is well.' }, secrets)).toEqual([expect.stringMatching(/^log: action, /)]);
});

test.each(Object.entries(ENCODINGS))('a secret in %s is found in a compressed file', (_name, write) => {
  expect(leaks({ archive: gzipSync(`x ${write(secrets.tool)}`) }, secrets)).toEqual([
    expect.stringMatching(/^archive: tool, /),
  ]);
});

test('what is left of a secret, or looks like one, is none', () => {
  const texts = {
    removed: 'private-token: [redacted]',
    beginning: 'glpat-canary',
    prose: 'The canary sang. H4sIAAAAAAAAA+++++++++++++ %41%42 &#65; \\u0041',
    bytes: Buffer.from([0x1f, 0x8b, 0, 1, 2]),
  };
  expect(leaks(texts, secrets)).toEqual([]);
});

test('a short canary would be found anywhere, and is refused', () => {
  expect(() => leaks({ log: '' }, { action: 'abc' })).toThrow('action: a canary has at least 12 characters');
});

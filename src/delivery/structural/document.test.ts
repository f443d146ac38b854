import { describe, expect, it } from 'vitest';
import { readDocument, writeDocument } from './document.ts';

describe('readDocument', () => {
  it.each([
    ['an alias', 'a: &x 1\nb: *x\n', /has the alias \*x/],
    ['a tag', 'a: !!str 1\n', /has the tag/],
    ['a tagged mapping', 'a: !x {b: 1}\n', /has the tag/],
    ['a key twice', 'a: 1\nb: 2\na: 3\n', /has the key a twice/],
    ['a key twice further down', 'a:\n  - {b: 1, b: 2}\n', /has the key b twice/],
    ['a merge key', 'a: {<<: {b: 1}}\n', /has a merge key/],
    ['a number for a key', '1: a\n', /has the key 1, which is no text/],
    ['two documents', 'a: 1\n---\nb: 2\n', /has 2 documents/],
    ['an old boolean', 'a: yes\n', /has yes, which YAML/],
    ['an octal', 'a: 0644\n', /has 0644, which YAML/],
    ['brackets without end', '['.repeat(20_000), /nested too deeply|is not YAML/],
  ])('refuses %s', (_, text, reason) => {
    expect(readDocument(text)).toEqual({ kind: 'Unreadable', reason: expect.stringMatching(reason) });
  });

  it('reads a mapping of many keys as fast as their number', () => {
    const text = Array.from({ length: 30_000 }, (_, at) => `key-${at}: ${at}\n`).join('');
    const reading = readDocument(text);
    expect(reading.kind === 'Read' && Object.keys(reading.value ?? {})).toHaveLength(30_000);
  });

  it('keeps whole numbers of any size, and a key called __proto__', () => {
    const reading = readDocument('size: 12345678901234567890\n__proto__: {a: 1}\n');
    expect(reading.kind === 'Read' && writeDocument(reading.value)).toBe(
      'size: 12345678901234567890\n__proto__:\n  a: 1\n',
    );
  });
});

import fc from 'fast-check';
import remarkParse from 'remark-parse';
import { unified } from 'unified';
import { describe, expect, it } from 'vitest';
import { commandOf } from './command.ts';

const PREFIX = '/hummingbird';
const of = (text: string) => commandOf(text, PREFIX);

describe('a command', () => {
  it.each<[string, string, string]>([
    ['/hummingbird', '', ''],
    ['/hummingbird  ', '', ''],
    ['/hummingbird review', 'review', ''],
    ['/hummingbird Review', 'review', ''],
    ['/hummingbird\treview', 'review', ''],
    ['/hummingbird review the cache', 'review', 'the cache'],
    ['/hummingbird review\nthe cache\n\n> and this', 'review', 'the cache\n\n> and this'],
    ['/hummingbird\nreview', 'review', ''],
    ['\n \r\n\t\n/hummingbird review', 'review', ''],
    ['   /hummingbird review', 'review', ''],
  ])('%j', (text, name, rest) => {
    expect(of(text)).toEqual({ name, rest });
  });

  it.each([
    'hummingbird review',
    '/hummingbirds review',
    '/hummingbird-review',
    '/Hummingbird review',
    'Please /hummingbird review',
    'First.\n\n/hummingbird review',
    '> /hummingbird review',
    '`/hummingbird review`',
    '```\n/hummingbird review\n```',
    '~~~\n/hummingbird review\n~~~',
    '    /hummingbird review',
    '\t/hummingbird review',
    '  \t/hummingbird review',
    '- /hummingbird review',
    '1. /hummingbird review',
    '# /hummingbird review',
    '<!-- /hummingbird review -->',
    '*/hummingbird review*',
    '\u200b/hummingbird review',
    '',
  ])('is none: %j', (text) => {
    expect(of(text)).toBeUndefined();
  });

  it('is found without reading a long note again and again', () => {
    expect(of(`${' '.repeat(500_000)}x`)).toBeUndefined();
    expect(of(`${'\n \t'.repeat(300_000)}\n/hummingbird help`)).toEqual({ name: 'help', rest: '' });
  });
});

/** As Markdown has it: the first thing in the note is a paragraph or a heading that begins with the prefix. */
function beginsAsMarkdown(text: string): boolean {
  const [first] = unified().use(remarkParse).parse(text).children;
  if (first?.type !== 'paragraph' && first?.type !== 'heading') return false;
  const [inner] = first.children;
  // A heading of the first kind begins with a character of its own.
  const plain = first.type === 'paragraph' || text.slice(first.position?.start.offset ?? 0)[0] === '/';
  return plain && inner?.type === 'text' && new RegExp(`^${PREFIX}(\\s|$)`).test(inner.value);
}

it('stands where Markdown, too, sees plain text at the beginning', () => {
  const pieces = fc.constantFrom(
    PREFIX,
    'review',
    ' ',
    '    ',
    '\t',
    '\n',
    '\r\n',
    '>',
    '`',
    '```',
    '~~~',
    '-',
    '1.',
    '#',
    '===',
    'x',
    '<!--',
    '*',
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
      const text = parts.join('');
      const found = of(text) !== undefined;
      // The other way round it is stricter: nothing may stand before the prefix, not even what Markdown drops.
      if (found) expect(beginsAsMarkdown(text), JSON.stringify(text)).toBe(true);
    }),
    { numRuns: 5_000 },
  );
});

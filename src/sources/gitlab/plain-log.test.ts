import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LogFilter, plainLog } from './plain-log.ts';

const plain = (text: string) => {
  const filter = new LogFilter();
  return filter.push(text) + filter.end();
};

async function* cut(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  let start = 0;
  for (const size of sizes) {
    yield bytes.subarray(start, start + size);
    start += size;
  }
  yield bytes.subarray(start);
}

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts).toString();
}

describe('what goes and what stays', () => {
  test.each([
    ['colours', '\u001b[31;1mFAIL\u001b[0;m x', 'FAIL x'],
    ['erasing', '\u001b[0Kdone\u001b[2K', 'done'],
    ['a title', '\u001b]0;title\u0007text', 'text'],
    ['a link', '\u001b]8;;https://x\u001b\\label\u001b]8;;\u001b\\', 'label'],
    ['a character set', '\u001b(Btext', 'text'],
    ['eight-bit control', '\u009b31mtext', 'text'],
    ['bell and backspace', 'a\u0007b\u0008c', 'abc'],
    ['tabs and line ends', 'a\tb\r\nc\n', 'a\tb\nc\n'],
    ['progress', '10%\r20%\r100%\n', '10%\n20%\n100%\n'],
    [
      'a section',
      '\u001b[0Ksection_start:1700000000:build_script\r\u001b[0K\u001b[0K$ make\nok\n\u001b[0Ksection_end:1700000001:build_script\r\u001b[0K\n',
      '$ make\nok\n\n',
    ],
    [
      'a collapsed section',
      'section_start:1700000000:a.b-c[collapsed=true,hide_duration=true]\rHeader\n',
      'Header\n',
    ],
    ['two markers in a row', 'section_end:1:a\r\u001b[0Ksection_start:2:b\r\u001b[0KNext\n', 'Next\n'],
    [
      'a section with a time',
      '2026-11-30T08:00:00.123456Z 00O section_start:1:a\r\u001b[0KNext\n2026-11-30T08:00:01.123456Z 00E no\n',
      'Next\n2026-11-30T08:00:01.123456Z 00E no\n',
    ],
    [
      'prose about sections',
      'section_start of the text\nsection\nsection_start:x\n',
      'section_start of the text\nsection\nsection_start:x\n',
    ],
    ['a stray escape before a line end', 'a\u001b[31\nb', 'a\nb'],
    ['an unterminated string', 'a\u001b]0;never\nb', 'a\nb'],
    ['a cut end', 'section_star', 'section_star'],
  ])('%s', (_what, text, expected) => {
    expect(plain(text)).toBe(expected);
  });
});

test('the result is the same wherever the chunks are cut, and has no control characters', async () => {
  const piece = fc.constantFrom(
    '\u001b',
    '[',
    '31m',
    ']0;',
    '\u0007',
    '\\',
    '\r',
    '\n',
    'section_start:1:a',
    'section_end:12:b[c=d]',
    'text',
    'é',
    '日本',
    '👩',
    '\u009b',
    '\u001b[0K',
    '2026-11-30T08:00:00.123456Z 00O ',
    '\t',
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(piece, { maxLength: 40 }),
      fc.array(fc.nat(7), { maxLength: 60 }),
      async (pieces, sizes) => {
        const bytes = Buffer.from(pieces.join(''));
        const whole = await collect(plainLog(cut(bytes, [])));
        expect(await collect(plainLog(cut(bytes, sizes)))).toBe(whole);
        expect(whole).not.toMatch(/[^\P{Cc}\t\n]/u);
      },
    ),
    { numRuns: 300 },
  );
});

test('invalid UTF-8 is replaced', async () => {
  expect(await collect(plainLog(cut(Buffer.from([0x61, 0xff, 0x62, 0xc3]), [2])))).toBe('a\ufffdb\ufffd');
});

test('a sequence that never ends swallows no more than 4 KiB', () => {
  expect(plain(`\u001b]${'x'.repeat(10_000)}`).length).toBeGreaterThan(5_000);
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LogFilter, plainLog } from './plain-log.ts';

const plain = (text: string) => {
  const filter = new LogFilter();
  return Buffer.concat([filter.push(Buffer.from(text)), filter.end()]).toString();
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

/** Everything that means something somewhere, and what looks like it. */
const piece = fc.constantFrom(
  ...[
    '\u001b',
    '[',
    '31m',
    ']0;',
    '\u0007',
    '\\',
    '\r',
    '\n',
    '\n\n',
    '\t',
    '\u009b',
    '\u0085',
    '\u007f',
    '\0',
  ],
  ...['\u001b[0K', '\u001b[32;1m', '\u001b[', '\u001b[?25 q', '\u001b[é', `\u001b[${'1;'.repeat(40)}m`],
  ...['section_start:1:a', 'section_end:12:b[c=d]', 'sec', 'section_', ':', 'src/a.ts', '7', '12:00'],
  ...['2026-11-30T08:00:00.123456Z 00O ', '2026-11-30T08:00:00.123456Z 01E+', '2026-11-30T08'],
  ...['text', 'é', '日本', '👩', '\ufeff', '\u2028'],
);
const pieces = fc.array(piece, { maxLength: 40 }).map((all) => all.join(''));

test('the result is the same wherever the chunks are cut, and has no control characters', async () => {
  await fc.assert(
    fc.asyncProperty(pieces, fc.array(fc.nat(7), { maxLength: 60 }), async (text, sizes) => {
      const bytes = Buffer.from(text);
      const whole = await collect(plainLog(cut(bytes, [])));
      expect(await collect(plainLog(cut(bytes, sizes)))).toBe(whole);
      expect(whole).not.toMatch(/[^\P{Cc}\t\n]/u);
    }),
    { numRuns: 1000 },
  );
});

test('what is found in long runs is what the machine finds by character', () => {
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 8 }), (parts) => {
      const text = parts.join('ordinary text\n');
      const filter = new LogFilter();
      const byCharacter = [...text].map((character) => Buffer.from(filter.push(Buffer.from(character))));
      expect(plain(text)).toBe(Buffer.concat([...byCharacter, filter.end()]).toString());
    }),
    { numRuns: 1000 },
  );
});

test('the same holds for bytes that are no UTF-8', async () => {
  const bytes = fc.uint8Array({ maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(bytes, fc.array(fc.nat(3), { maxLength: 30 }), async (raw, sizes) => {
      expect(await collect(plainLog(cut(raw, sizes)))).toBe(await collect(plainLog(cut(raw, []))));
    }),
    { numRuns: 1000 },
  );
});

test('a log may be cut at any place, also in two', async () => {
  const bytes = Buffer.from(
    'first line\n' +
      '2026-11-30T08:00:00.123456Z 00O section_start:1700000000:build[collapsed=true]\r\u001b[0K\u001b[32;1m$ make é👩\u001b[0;m\n' +
      '\u001b[0K2026-11-30T08:00:01.123456Z 00E section_end:1700000001:build\r\u001b[0Kok\u009f\n' +
      '10%\r20%\u001b[K\r100%\r\n\u001b]0;title\u001b\\src/a.ts\nsection_end:1700000001:build\r\u001b[0K\nend\u001b[3',
  );
  const expected = 'first line\n$ make é👩\nok\n10%\n20%\n100%\nsrc/a.ts\n\nend';
  for (let first = 0; first <= bytes.length; first++) {
    expect(await collect(plainLog(cut(bytes, [first])))).toBe(expected);
    for (const second of [1, 2, 3, 31])
      expect(await collect(plainLog(cut(bytes, [first, second])))).toBe(expected);
  }
});

test.each(['\u001b', '\u001b[', '\u001b[31;', '\u001b]0;a title', '\u001b]0;a\u001b', '\u009b1', '\u001b('])(
  'a sequence that the end cuts off leaves nothing: %j',
  async (start) => {
    expect(await collect(plainLog(cut(Buffer.from(`done${start}`), [])))).toBe('done');
  },
);

test('a progress bar of ten thousand steps is a line for each', () => {
  const steps = Array.from({ length: 10_000 }, (_, step) => `\u001b[2K\rstep ${step}`);
  expect(plain(`start${steps.join('')}\n`).split('\n')).toHaveLength(10_002);
});

test('invalid UTF-8 is replaced', async () => {
  expect(await collect(plainLog(cut(Buffer.from([0x61, 0xff, 0x62, 0xc3]), [2])))).toBe('a\ufffdb\ufffd');
});

test('a sequence that never ends swallows no more than 4 KiB', () => {
  expect(plain(`\u001b]${'x'.repeat(10_000)}`).length).toBeGreaterThan(5_000);
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LineTooLongError, splitLines } from './lines.ts';

async function* inChunks(bytes: Uint8Array, sizes: readonly number[]): AsyncIterable<Uint8Array> {
  let from = 0;
  for (const size of [...sizes, bytes.byteLength]) {
    yield bytes.subarray(from, from + size);
    from += size;
  }
}

async function all(lines: AsyncIterable<string>): Promise<string[]> {
  const found: string[] = [];
  for await (const line of lines) found.push(line);
  return found;
}

test('lines come out the same however the bytes were cut, characters of several bytes included', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc
          .string({ unit: 'grapheme', minLength: 1 })
          .filter((s) => !/[\n]/.test(s) && s.trim() === s && s !== ''),
      ),
      fc.array(fc.nat(7)),
      async (lines, sizes) => {
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
        expect(await all(splitLines(inChunks(bytes, sizes), 1 << 20))).toEqual(lines);
      },
    ),
  );
});

test('a last line without a newline is not lost, empty lines are', async () => {
  expect(await all(splitLines(inChunks(Buffer.from('a\n\n\r\nb'), []), 10))).toEqual(['a', 'b']);
});

test('a line over the bound is refused before it is held', async () => {
  await expect(all(splitLines(inChunks(Buffer.from('x'.repeat(11)), [4, 4]), 10))).rejects.toThrow(
    LineTooLongError,
  );
});

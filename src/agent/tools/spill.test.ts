import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  CUT_MARGIN_BYTES,
  createSpillCounter,
  HEAD_BYTES,
  headOf,
  MAX_INLINE_BYTES,
  spillPath,
  TAIL_BYTES,
  tailOf,
} from './spill.ts';

test('previews of any text are whole characters of its start and end, nearly as many as fit', () => {
  const unit = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 7 });
  fc.assert(
    fc.property(unit, fc.nat(5), (piece, shift) => {
      const text =
        'x'.repeat(shift) + piece.repeat(Math.ceil((MAX_INLINE_BYTES + 2000) / Buffer.byteLength(piece)));
      const bytes = Buffer.from(text);
      const [head, tail] = [headOf(bytes), tailOf(bytes)];
      expect(text.startsWith(head)).toBe(true);
      expect(text.endsWith(tail)).toBe(true);
      // Up to 3 bytes of a character are lost where the margin ends, and up to 3 at the cut.
      for (const [preview, size] of [
        [head, HEAD_BYTES],
        [tail, TAIL_BYTES],
      ] as const) {
        expect(Buffer.byteLength(preview)).toBeLessThanOrEqual(size);
        expect(Buffer.byteLength(preview)).toBeGreaterThan(size - 8);
      }
    }),
  );
});

test('previews of any bytes are bounded and never fail', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 4097, maxLength: 6000 }), (bytes) => {
      // One foreign byte becomes three of U+FFFD, so the text is cut again after decoding.
      expect(Buffer.byteLength(headOf(bytes))).toBeLessThanOrEqual(HEAD_BYTES);
      expect(Buffer.byteLength(tailOf(bytes))).toBeLessThanOrEqual(TAIL_BYTES);
    }),
  );
});

test('no part of a secret is left at a cut, wherever it lies', () => {
  const secret = 'glpat-abcdefghijklmnop';
  const redact = (text: string): string => text.replaceAll(secret, '[redacted]');
  for (let at = HEAD_BYTES - 40; at < HEAD_BYTES + CUT_MARGIN_BYTES + 40; at++) {
    const text = 'x'.repeat(at) + secret + 'y'.repeat(3000);
    expect(headOf(Buffer.from(text), redact)).not.toMatch(/glpat|bcdef|mnop/);
    expect(
      tailOf(
        Buffer.from(
          [...text]
            .reverse()
            .join('')
            .replace([...secret].reverse().join(''), secret),
        ),
        redact,
      ),
    ).not.toMatch(/glpat|bcdef|mnop/);
  }
});

test('the counter counts up and takes back only what nobody overtook', () => {
  const counter = createSpillCounter(4);
  expect([counter.next(), counter.next()]).toEqual([5, 6]);
  counter.giveBack([5, 6]);
  expect(counter.last).toBe(4);
  const [a, b] = [counter.next(), counter.next()];
  counter.next();
  counter.giveBack([a, b]);
  expect(counter.last).toBe(7);
});

test("a tool's name and suffix cannot leave the folder", () => {
  expect(spillPath('a/../b_1', '.tar.gz')).toBe('/tmp/data/_out/a_.._b_1.tar.gz');
  expect(spillPath('x', '/../../etc')).toBe('/tmp/data/_out/x_.._.._etc');
});

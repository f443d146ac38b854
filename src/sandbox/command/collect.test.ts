import { describe, expect, it } from 'vitest';
import { CappedOutput } from './collect.ts';

function collect(maxBytes: number, chunks: readonly string[]) {
  const output = new CappedOutput(maxBytes);
  for (const chunk of chunks) output.write(Buffer.from(chunk));
  return { kept: Buffer.from(output.kept).toString(), bytes: output.bytes };
}

describe('capped output', () => {
  it.each([
    [10, [], '', 0],
    [10, ['abc', 'def'], 'abcdef', 6],
    [6, ['abc', 'def'], 'abcdef', 6],
    [4, ['abc', 'def', 'ghi'], 'abcd', 9],
    [0, ['abc'], '', 3],
  ])('of at most %i bytes of %j keeps %j and counts %i', (max, chunks, kept, bytes) => {
    expect(collect(max, chunks)).toEqual({ kept, bytes });
  });

  it('does not keep the buffer that a chunk is a view on', () => {
    const network = Buffer.alloc(64 * 1024, 'x');
    const output = new CappedOutput(1024);
    output.write(network.subarray(0, 1));
    network.fill('y');
    expect(Buffer.from(output.kept).toString()).toBe('x');
    expect(output.kept.buffer.byteLength).toBeLessThan(64 * 1024);
  });
});

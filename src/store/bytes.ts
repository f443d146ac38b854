import { createHash, type Hash } from 'node:crypto';

export async function* asChunks(body: Uint8Array | AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (body instanceof Uint8Array) yield body;
  else yield* body;
}

/** Counts and hashes what passes, so that a stream is read once only. */
export interface Meter {
  readonly bytes: number;
  /** To be asked once, after the last chunk. */
  sha256(): string;
  pass(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array>;
}

export function createMeter(): Meter {
  const hash: Hash = createHash('sha256');
  let bytes = 0;
  return {
    get bytes() {
      return bytes;
    },
    sha256: () => hash.digest('hex'),
    async *pass(chunks) {
      for await (const chunk of chunks) {
        bytes += chunk.length;
        hash.update(chunk);
        yield chunk;
      }
    },
  };
}

/** Regroups chunks into parts of exactly `size` bytes, the last one shorter. Holds one part at a time. */
export async function* partsOf(chunks: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  let part: Uint8Array[] = [];
  let filled = 0;
  for await (const chunk of chunks) {
    let rest = chunk;
    while (filled + rest.length >= size) {
      const taken = rest.subarray(0, size - filled);
      yield Buffer.concat([...part, taken]);
      rest = rest.subarray(taken.length);
      part = [];
      filled = 0;
    }
    if (rest.length > 0) {
      // Copied: the source may use its buffer again.
      part.push(Buffer.from(rest));
      filled += rest.length;
    }
  }
  if (filled > 0) yield Buffer.concat(part);
}

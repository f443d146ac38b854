import { pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Exchange } from './exchange.ts';
import type { IdleDeadline } from './idle.ts';

/** The whole decoded body, at most `maxBytes` of it in memory. */
export async function readBounded(answer: Exchange, maxBytes: number): Promise<Uint8Array> {
  const announced = Number(answer.headers['content-length'] ?? 0);
  if (announced > maxBytes) {
    answer.body.on('error', () => {});
    answer.body.destroy();
    throw tooLarge(answer, maxBytes);
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of readDecoded(answer, maxBytes)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The decoded body chunk by chunk, in constant memory: the socket waits for the reader. */
export async function* readDecoded(
  answer: Exchange,
  maxBytes: number,
  idle?: IdleDeadline,
): AsyncGenerator<Uint8Array> {
  const body = decoded(answer);
  let size = 0;
  try {
    for await (const chunk of body) {
      // A slow reader is no silent server.
      idle?.stop();
      const bytes: Uint8Array = chunk;
      size += bytes.length;
      if (size > maxBytes) throw tooLarge(answer, maxBytes);
      yield bytes;
      idle?.start();
    }
  } catch (error) {
    throw answer.explain(error);
  } finally {
    idle?.stop();
    body.on('error', () => {});
    body.destroy();
    answer.body.on('error', () => {});
    answer.body.destroy();
  }
}

function decoded(answer: Exchange): Readable {
  const encoding = (answer.headers['content-encoding'] ?? 'identity').toLowerCase();
  const decoder =
    encoding === 'gzip' || encoding === 'x-gzip'
      ? createGunzip()
      : encoding === 'deflate'
        ? createInflate()
        : encoding === 'br'
          ? createBrotliDecompress()
          : undefined;
  if (decoder === undefined) return answer.body;
  // The callback only keeps pipeline from throwing: the reader sees the error on the decoder.
  pipeline(answer.body, decoder, () => {});
  return decoder;
}

function tooLarge(answer: Exchange, maxBytes: number) {
  return answer.error(`the answer is larger than ${maxBytes} bytes`, { code: 'TooLarge', retryable: false });
}

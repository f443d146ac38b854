import { pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { arriving } from './arriving.ts';
import type { Deadline } from './deadline.ts';
import type { Exchange } from './exchange.ts';

/** The whole decoded body, at most `maxBytes` of it in memory. */
export async function readBounded(answer: Exchange, maxBytes: number): Promise<Uint8Array> {
  const announced = Number(answer.headers['content-length'] ?? 0);
  if (announced > maxBytes) {
    answer.body.on('error', () => {});
    answer.body.destroy();
    throw tooLarge(answer, maxBytes);
  }
  return collected(answer, maxBytes);
}

/** By events: what an iterator costs is most of a small answer. */
function collected(answer: Exchange, maxBytes: number): Promise<Uint8Array> {
  const body = decoded(answer);
  const chunks: Uint8Array[] = [];
  let size = 0;
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => {
      reject(error);
      body.destroy();
      answer.body.on('error', () => {});
      answer.body.destroy();
    };
    body
      .on('data', (chunk: Uint8Array) => {
        size += chunk.length;
        if (size > maxBytes) fail(tooLarge(answer, maxBytes));
        else chunks.push(chunk);
      })
      .on('end', () => resolve(Buffer.concat(chunks)))
      .on('error', (error) => fail(answer.explain(error)))
      .on('close', () => {
        if (!body.readableEnded && !body.errored) fail(answer.explain(new Error('closed before its end')));
      });
  });
}

/** The decoded body chunk by chunk, in constant memory: the socket waits for the reader. */
export async function* readDecoded(
  answer: Exchange,
  maxBytes: number,
  idle?: Deadline,
): AsyncGenerator<Uint8Array> {
  const body = decoded(answer);
  let size = 0;
  try {
    for await (const chunk of arriving(body, idle)) {
      size += chunk.length;
      if (size > maxBytes) throw tooLarge(answer, maxBytes);
      yield chunk;
    }
  } catch (error) {
    throw answer.explain(error);
  } finally {
    idle?.end();
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

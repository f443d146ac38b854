import { PassThrough, Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { arriving } from './arriving.ts';

async function collected(chunks: AsyncIterable<Uint8Array>): Promise<readonly string[]> {
  const all: string[] = [];
  for await (const chunk of chunks) all.push(Buffer.from(chunk).toString());
  return all;
}

test('chunks come as they were sent, and none is put together with the next', async () => {
  const body = new PassThrough();
  for (const word of ['one', 'two', 'three']) body.write(word);
  body.end();
  expect(await collected(arriving(body))).toEqual(['one', 'two', 'three']);
});

test('what came before a stream broke off is given before its error', async () => {
  const body = new PassThrough();
  const chunks = arriving(body);
  const first = chunks.next();
  for (const word of ['one', 'two']) body.write(word);
  expect((await first).value?.toString()).toBe('one');
  body.destroy(new Error('cut'));
  expect((await chunks.next()).value?.toString()).toBe('two');
  await expect(chunks.next()).rejects.toThrow('cut');
});

test('a stream that broke off before anybody read it says so', async () => {
  const failed = new PassThrough().on('error', () => {});
  failed.destroy(new Error('cut'));
  await expect(arriving(failed).next()).rejects.toThrow('cut');
  const closed = new PassThrough();
  closed.destroy();
  await expect(arriving(closed).next()).rejects.toThrow('closed before its end');
});

test('a stream that closes in the middle without an error is no whole one', async () => {
  const body = new PassThrough();
  const next = arriving(body).next();
  body.destroy();
  await expect(next).rejects.toThrow('closed before its end');
});

test('a reader that takes its time holds the stream up', async () => {
  const chunk = Buffer.alloc(16 * 1024);
  let given = 0;
  const body = new Readable({
    read() {
      given += 1;
      this.push(given > 1000 ? null : chunk);
    },
  });
  let taken = 0;
  let furthest = 0;
  for await (const _chunk of arriving(body)) {
    taken += 1;
    await new Promise((resolve) => setImmediate(resolve));
    furthest = Math.max(furthest, given - taken);
  }
  expect(taken).toBe(1000);
  expect(furthest * chunk.length).toBeLessThan(1024 * 1024);
});

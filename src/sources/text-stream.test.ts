import { expect, test } from 'vitest';
import { HttpError } from '../http/errors.ts';
import { textStream } from './text-stream.ts';

const options = { suffix: '.log', what: 'log', whenEmpty: 'The log is empty.' };

async function* of(...parts: readonly (string | Error)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) {
    if (part instanceof Error) throw part;
    yield Buffer.from(part);
  }
}

async function read(body: AsyncIterable<Uint8Array>) {
  const output = textStream(body, options);
  const parts: Uint8Array[] = [];
  for await (const chunk of output.chunks) parts.push(chunk);
  return { text: Buffer.concat(parts).toString(), missing: output.incomplete?.() };
}

const brokenOff = new HttpError('GET https://x.example/: the connection broke off', {
  method: 'GET',
  url: 'https://x.example/',
  retryable: true,
});

test('a whole text is handed on and nothing is missing', async () => {
  expect(await read(of('one', ' two'))).toEqual({ text: 'one two', missing: undefined });
});

test('a text that breaks off keeps what has come and says so', async () => {
  expect(await read(of('one', brokenOff))).toEqual({
    text: 'one',
    missing: `The log broke off after 3 bytes (${brokenOff.message}); the rest is missing.`,
  });
});

test('an empty text says what that means', async () => {
  expect(await read(of())).toEqual({ text: '', missing: 'The log is empty.' });
});

test('what is not of the source is not taken for its end', async () => {
  await expect(read(of('one', new Error('cancelled')))).rejects.toThrow('cancelled');
});

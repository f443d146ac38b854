import type { Readable } from 'node:stream';
import type { Deadline } from './deadline.ts';

/** Bytes that lie ready when the stream is told to wait, so that network and reader need not wait in turn. */
const AHEAD_BYTES = 256 * 1024;

/**
 * A stream's chunks as they came. A stream's own iterator copies what has gathered into one chunk, and asks for the
 * next only when the reader does. Throws the stream's error after the chunks that came before it. `idle` runs while
 * nothing is there: a slow reader is no silent server.
 */
export async function* arriving(body: Readable, idle?: Deadline): AsyncGenerator<Uint8Array> {
  const ready: Uint8Array[] = [];
  let readyBytes = 0;
  let ended = false;
  // One that broke off before anybody read it does not say so again.
  let failure = body.destroyed ? { cause: body.errored ?? closedEarly() } : undefined;
  let wake: () => void = () => undefined;
  const fail = (cause: Error): void => {
    failure ??= { cause };
    wake();
  };
  body
    .on('data', (chunk: Uint8Array) => {
      ready.push(chunk);
      readyBytes += chunk.length;
      if (readyBytes >= AHEAD_BYTES) body.pause();
      wake();
    })
    .on('end', () => {
      ended = true;
      wake();
    })
    .on('error', fail)
    .on('close', () => {
      if (!ended) fail(closedEarly());
    });
  for (;;) {
    const chunk = ready.shift();
    if (chunk !== undefined) {
      idle?.pause();
      readyBytes -= chunk.length;
      if (readyBytes < AHEAD_BYTES / 2 && body.isPaused()) body.resume();
      yield chunk;
      continue;
    }
    if (failure !== undefined) throw failure.cause;
    if (ended) return;
    idle?.start();
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
}

const closedEarly = (): Error => new Error('closed before its end');

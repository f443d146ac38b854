import { setImmediate as nextTurn } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import { ExecError, messageOf } from './exec-error.ts';
import type { BufferGarbage } from './exec-garbage.ts';
import { CHANNEL, closeFrame, stdinFrame } from './exec-protocol.ts';

/** Large enough that the cost per message does not show, small against what may wait. */
const FRAME_BYTES = 128 * 1024;
/** Bytes that may wait in the process for the network before the source is asked for more. */
const HIGH_WATER_BYTES = 512 * 1024;

/** One command's standard input on its way into the socket. */
export class StdinPump {
  readonly #socket: WebSocket;
  readonly #garbage: BufferGarbage;
  readonly #iterator: AsyncIterator<Uint8Array>;
  #stopped = false;
  #sentBytes = 0;

  constructor(socket: WebSocket, source: AsyncIterable<Uint8Array>, garbage: BufferGarbage) {
    this.#socket = socket;
    this.#garbage = garbage;
    this.#iterator = source[Symbol.asyncIterator]();
  }

  get sentBytes(): number {
    return this.#sentBytes;
  }

  /** Sends all, then says that the input has ended. Rejects only when the source throws. */
  async run(): Promise<void> {
    while (!this.#stopped) {
      const next = await this.#next();
      if (this.#stopped) return;
      if (next.done === true) {
        this.#socket.send(closeFrame(CHANNEL.stdin), ignoreSendError);
        return;
      }
      await this.#send(next.value);
    }
  }

  /** The command wants no more, or is over: the source is told, and not waited for. */
  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    void this.#iterator.return?.()?.catch(() => undefined);
  }

  async #next(): Promise<IteratorResult<Uint8Array>> {
    try {
      return await this.#iterator.next();
    } catch (cause) {
      throw new ExecError('StdinFailed', `exec: the source of standard input failed: ${messageOf(cause)}`, {
        cause,
      });
    }
  }

  async #send(chunk: Uint8Array): Promise<void> {
    for (let offset = 0; offset < chunk.length && !this.#stopped; offset += FRAME_BYTES) {
      const part = chunk.subarray(offset, offset + FRAME_BYTES);
      this.#sentBytes += part.length;
      this.#garbage.add(part.length);
      const written = this.#write(stdinFrame(part));
      if (this.#socket.bufferedAmount > HIGH_WATER_BYTES) await written;
      // A command may end before it has read its input: then the server sends the status and closes, and answers
      // what we send afterwards with a reset. Reading between two writes sees the status before a failed write
      // destroys the socket with the status unread in it.
      await nextTurn();
    }
  }

  /** Resolves when the frame is with the kernel, or cannot go there any more. */
  #write(frame: Buffer): Promise<void> {
    return new Promise((resolve) => this.#socket.send(frame, () => resolve()));
  }
}

/** A lost connection is told by the socket's close event; a failed send says nothing more. */
function ignoreSendError(): void {}

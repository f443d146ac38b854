/** One JSON value as it came. */
export interface Captured {
  /** All of it, in one piece. To be used before the next is taken: the room is used again. */
  readonly json: Uint8Array;
  /** The same, as parts of the chunks that it came in: to keep or to hand on, without a copy. */
  readonly parts: readonly Uint8Array[];
}

/**
 * Bytes of one value that come in pieces. What is large is not copied for each value anew: the garbage would be a
 * multiple of the list. Beyond its limit it keeps nothing.
 */
export class Capture {
  readonly #maxBytes: number;
  #room = new Uint8Array(0);
  #parts: Uint8Array[] = [];
  #size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  add(chunk: Uint8Array, from: number, to: number): void {
    if (from === to) return;
    this.#size += to - from;
    if (this.#size > this.#maxBytes) this.#parts = [];
    else this.#parts.push(chunk.subarray(from, to));
  }

  /** All bytes since the last call; undefined when they were too many. */
  take(): Captured | undefined {
    const size = this.#size;
    const parts = this.#parts;
    this.#size = 0;
    this.#parts = [];
    if (size > this.#maxBytes) return undefined;
    const [only] = parts;
    if (only !== undefined && parts.length === 1) return { json: only, parts };
    if (size > this.#room.length)
      this.#room = new Uint8Array(Math.min(this.#maxBytes, Math.max(size, this.#room.length * 2)));
    let at = 0;
    for (const part of parts) {
      this.#room.set(part, at);
      at += part.length;
    }
    return { json: this.#room.subarray(0, size), parts };
  }
}

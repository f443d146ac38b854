/** Bytes of one value that come in pieces. Keeps its room for the next value; beyond its limit it keeps nothing. */
export class Capture {
  readonly #maxBytes: number;
  #room: Uint8Array = new Uint8Array(64 * 1024);
  #size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  add(chunk: Uint8Array, from: number, to: number): void {
    const size = this.#size + to - from;
    if (size <= this.#maxBytes) {
      this.#makeRoom(size);
      this.#room.set(chunk.subarray(from, to), this.#size);
    }
    this.#size = size;
  }

  /** All bytes since the last call, as a copy; undefined when they were too many. */
  take(): Uint8Array | undefined {
    const size = this.#size;
    this.#size = 0;
    return size > this.#maxBytes ? undefined : this.#room.slice(0, size);
  }

  #makeRoom(size: number): void {
    if (size <= this.#room.length) return;
    const larger = new Uint8Array(Math.min(this.#maxBytes, Math.max(size, this.#room.length * 2)));
    larger.set(this.#room.subarray(0, this.#size));
    this.#room = larger;
  }
}

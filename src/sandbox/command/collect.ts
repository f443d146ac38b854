/** Keeps the first `maxBytes` of a stream in memory of its own, and counts the rest. */
export class CappedOutput {
  readonly #maxBytes: number;
  #kept: Buffer = Buffer.alloc(0);
  #keptBytes = 0;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** All that came, kept or not. */
  get bytes(): number {
    return this.#bytes;
  }

  get kept(): Uint8Array {
    return this.#kept.subarray(0, this.#keptBytes);
  }

  write(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    const part = chunk.subarray(0, this.#maxBytes - this.#keptBytes);
    if (part.length === 0) return;
    this.#grow(this.#keptBytes + part.length);
    // A copy: a view would keep the whole network buffer behind it, 64 KiB for a chunk of one byte.
    this.#kept.set(part, this.#keptBytes);
    this.#keptBytes += part.length;
  }

  #grow(needed: number): void {
    if (needed <= this.#kept.length) return;
    const larger = Buffer.allocUnsafe(
      Math.min(this.#maxBytes, Math.max(needed, 2 * this.#kept.length, 4096)),
    );
    larger.set(this.#kept.subarray(0, this.#keptBytes));
    this.#kept = larger;
  }
}

/** Gives what is written to one reader, chunk by chunk; a write waits until its chunk was asked for and used. */
export class Handoff implements AsyncIterable<Uint8Array> {
  #waiting: { readonly chunk: Uint8Array; readonly taken: () => void } | undefined;
  #wake: () => void = () => undefined;
  #ended = false;
  #abandoned = false;

  write(chunk: Uint8Array): Promise<void> | void {
    if (this.#abandoned) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting = { chunk, taken: resolve };
    this.#wake();
    return promise;
  }

  /** No more is written. */
  end(): void {
    this.#ended = true;
    this.#wake();
  }

  /** Nobody reads any more: what is written is dropped, so that the writer comes to its end. */
  abandon(): void {
    this.#abandoned = true;
    this.#waiting?.taken();
    this.#waiting = undefined;
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    for (;;) {
      while (this.#waiting === undefined && !this.#ended) await this.#written();
      const waiting = this.#waiting;
      if (waiting === undefined) return;
      this.#waiting = undefined;
      try {
        yield waiting.chunk;
      } finally {
        waiting.taken();
      }
    }
  }

  #written(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    return promise;
  }
}

/** `chunk` in views of at most `maxBytes`. */
export function* pieces(chunk: Uint8Array, maxBytes: number): Iterable<Uint8Array> {
  for (let offset = 0; offset < chunk.length; offset += maxBytes)
    yield chunk.subarray(offset, offset + maxBytes);
}

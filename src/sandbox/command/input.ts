import type { ByteSink } from '../../kube/exec.ts';

const ENDED = Symbol('ended');

/** A command's input, as long as the command wants it. */
export class CommandInput implements AsyncIterable<Uint8Array> {
  /** What the source threw. */
  failure: { readonly cause: unknown } | undefined;
  readonly #chunks: AsyncIterable<Uint8Array>;
  readonly #endCommand: () => Promise<unknown>;
  #ended = false;
  /** Ends the wait for the source's next chunk. */
  #wake: () => void = () => undefined;

  /**
   * `endCommand` is called when the source fails, before anybody is told: the command would take the end of the
   * connection for the end of its input, and what it has got for the whole.
   */
  constructor(chunks: AsyncIterable<Uint8Array>, endCommand: () => Promise<unknown>) {
    this.#chunks = chunks;
    this.#endCommand = endCommand;
  }

  /** The command has ended: the input ends too, whatever the source still has. */
  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    const iterator = this.#chunks[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await this.#next(iterator);
        if (next === ENDED || next.done === true) return;
        yield next.value;
      }
    } finally {
      // Not waited for: a source that is waiting itself would hold up the end.
      void iterator.return?.()?.catch(() => undefined);
    }
  }

  /**
   * Whichever comes first. A race against one promise that stands for the end would do it in a line, and keep every
   * chunk until the command is over: a promise holds on to all that ever raced against it.
   */
  async #next(iterator: AsyncIterator<Uint8Array>): Promise<IteratorResult<Uint8Array> | typeof ENDED> {
    if (this.#ended) return ENDED;
    const first = Promise.withResolvers<IteratorResult<Uint8Array> | typeof ENDED>();
    this.#wake = () => first.resolve(ENDED);
    // When the command's end comes first, a failure afterwards is nobody's: it settles nothing.
    iterator.next().then(first.resolve, first.reject);
    try {
      return await first.promise;
    } catch (cause) {
      this.failure = { cause };
      await this.#endCommand();
      throw cause;
    } finally {
      this.#wake = () => undefined;
    }
  }
}

/** Takes the first mark out of what goes to `sink`, wherever the chunks are cut, and tells when it has come. */
export class EndMarkFilter implements ByteSink {
  readonly #mark: Buffer;
  readonly #sink: ByteSink | undefined;
  readonly #onMark: () => void;
  #held: Buffer = Buffer.alloc(0);
  #found = false;

  constructor(mark: string, sink: ByteSink | undefined, onMark: () => void) {
    this.#mark = Buffer.from(mark);
    this.#sink = sink;
    this.#onMark = onMark;
  }

  async write(chunk: Uint8Array): Promise<void> {
    if (this.#found) return await this.#pass(chunk);
    const bytes = Buffer.concat([this.#held, chunk]);
    const at = bytes.indexOf(this.#mark);
    const end = at < 0 ? bytes.length - possibleStart(bytes, this.#mark) : at;
    this.#held = at < 0 ? bytes.subarray(end) : Buffer.alloc(0);
    await this.#pass(bytes.subarray(0, end));
    if (at < 0) return;
    this.#found = true;
    this.#onMark();
    await this.#pass(bytes.subarray(at + this.#mark.length));
  }

  /** No more comes: what was held back as the possible beginning of the mark was none. */
  async flush(): Promise<void> {
    const held = this.#held;
    this.#held = Buffer.alloc(0);
    await this.#pass(held);
  }

  async #pass(bytes: Uint8Array): Promise<void> {
    if (bytes.length > 0) await this.#sink?.write(bytes);
  }
}

/** Bytes at the end that may be the beginning of the mark. */
function possibleStart(bytes: Buffer, mark: Buffer): number {
  for (let length = Math.min(bytes.length, mark.length - 1); length > 0; length--) {
    if (bytes.subarray(bytes.length - length).equals(mark.subarray(0, length))) return length;
  }
  return 0;
}

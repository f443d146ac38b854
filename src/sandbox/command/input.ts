import type { ByteSink } from '../../kube/exec.ts';

type Arrival =
  | { readonly kind: 'Next'; readonly next: IteratorResult<Uint8Array> }
  | { readonly kind: 'Failure'; readonly cause: unknown };

/** A command's input, as long as the command wants it. */
export class CommandInput implements AsyncIterable<Uint8Array> {
  /** What the source threw. */
  failure: { readonly cause: unknown } | undefined;
  readonly #chunks: AsyncIterable<Uint8Array>;
  readonly #endCommand: () => Promise<unknown>;
  #ended = false;
  /** What the source has answered last, until it is taken. */
  #arrival: Arrival | undefined;
  /** Ends the wait for it. */
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
        const arrival = await this.#next(iterator);
        if (arrival === undefined) return;
        if (arrival.kind === 'Failure') {
          this.failure = { cause: arrival.cause };
          await this.#endCommand();
          throw arrival.cause;
        }
        if (arrival.next.done === true) return;
        yield arrival.next.value;
      }
    } finally {
      // Not waited for: a source that is waiting itself would hold up the end.
      void iterator.return?.()?.catch(() => undefined);
    }
  }

  /**
   * The source's answer, or undefined when the command's end comes first; what comes afterwards, a failure too, is
   * nobody's. A race of promises would do it in a line and keep every chunk until the command is over: a promise holds
   * on to all that ever raced against it. What refers to a chunk must not live as long as this either: the collector
   * would take the chunks for old, and find them late.
   */
  async #next(iterator: AsyncIterator<Uint8Array>): Promise<Arrival | undefined> {
    if (this.#ended) return undefined;
    iterator.next().then(this.#onNext, this.#onFailure);
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    const arrival = this.#arrival;
    this.#arrival = undefined;
    return arrival;
  }

  readonly #onNext = (next: IteratorResult<Uint8Array>): void => this.#arrived({ kind: 'Next', next });

  readonly #onFailure = (cause: unknown): void => this.#arrived({ kind: 'Failure', cause });

  #arrived(arrival: Arrival): void {
    if (this.#ended) return;
    this.#arrival = arrival;
    this.#wake();
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

/** Aborts when the other side has sent nothing for a while; stopped while the reader is busy with a chunk. */
export class IdleDeadline {
  readonly #controller = new AbortController();
  readonly #ms: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(ms: number) {
    this.#ms = ms;
    this.start();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  start(): void {
    this.stop();
    this.#timer = setTimeout(() => {
      this.#controller.abort(new DOMException(`nothing received for ${this.#ms} ms`, 'TimeoutError'));
    }, this.#ms);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

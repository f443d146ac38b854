/**
 * Aborts its signal with the caller's reason, or when its time is over. `start` and `pause` make it a bound on silence:
 * it stands still while the reader is busy with a chunk. One signal and one timer for each exchange: chains of them
 * (`AbortSignal.any`, `AbortSignal.timeout`) cost more than the rest of a small request.
 */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #ms: number;
  readonly #message: string;
  readonly #caller: AbortSignal | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `message` says what did not happen in time. */
  constructor(ms: number, message: string, caller?: AbortSignal) {
    this.#ms = ms;
    this.#message = message;
    this.#caller = caller;
    if (caller?.aborted) this.#handOn();
    else caller?.addEventListener('abort', this.#handOn, { once: true });
    this.start();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  start(): void {
    this.pause();
    this.#timer = setTimeout(() => {
      this.#controller.abort(new DOMException(this.#message, 'TimeoutError'));
    }, this.#ms);
  }

  pause(): void {
    clearTimeout(this.#timer);
  }

  /** Nothing aborts it any more. */
  end(): void {
    this.pause();
    this.#caller?.removeEventListener('abort', this.#handOn);
  }

  readonly #handOn = (): void => this.#controller.abort(this.#caller?.reason);
}

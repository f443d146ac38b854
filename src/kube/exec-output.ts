/** Where a stream's bytes go. A promise holds back the next chunk, and in the end the command that writes it. */
export interface ByteSink {
  write(chunk: Uint8Array): void | Promise<void>;
}

export interface Valve {
  pause(): void;
  resume(): void;
}

/** Waiting bytes above which the socket is no longer read, and below which it is read again. */
const HIGH_WATER_BYTES = 512 * 1024;
const LOW_WATER_BYTES = 128 * 1024;

/**
 * Handles what the socket brings one after the other and in order, so that the exit status is seen only after
 * the output before it has been taken. Bounded: the socket is paused while a sink has not caught up.
 */
export class OrderedOutput<T> {
  readonly #valve: Valve;
  readonly #handle: (item: T) => void | Promise<void>;
  readonly #onError: (error: unknown) => void;
  readonly #waiting: { readonly item: T; readonly bytes: number }[] = [];
  #waitingBytes = 0;
  #draining = false;
  #paused = false;
  #stopped = false;

  constructor(valve: Valve, handle: (item: T) => void | Promise<void>, onError: (error: unknown) => void) {
    this.#valve = valve;
    this.#handle = handle;
    this.#onError = onError;
  }

  /** Something waits for a sink: silence on the connection is ours, not the server's. */
  get busy(): boolean {
    return this.#draining;
  }

  push(item: T, bytes: number): void {
    if (this.#stopped) return;
    this.#waiting.push({ item, bytes });
    this.#waitingBytes += bytes;
    if (!this.#paused && this.#waitingBytes > HIGH_WATER_BYTES) {
      this.#paused = true;
      this.#valve.pause();
    }
    if (!this.#draining) void this.#drain();
  }

  /** What waits is dropped, what comes is ignored. */
  stop(): void {
    this.#stopped = true;
    this.#waiting.length = 0;
  }

  async #drain(): Promise<void> {
    this.#draining = true;
    try {
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
        const taken = this.#handle(next.item);
        if (taken !== undefined) await taken;
        this.#release(next.bytes);
      }
    } catch (error) {
      this.stop();
      this.#onError(error);
    } finally {
      this.#draining = false;
    }
  }

  #release(bytes: number): void {
    this.#waitingBytes -= bytes;
    if (this.#paused && !this.#stopped && this.#waitingBytes < LOW_WATER_BYTES) {
      this.#paused = false;
      this.#valve.resume();
    }
  }
}

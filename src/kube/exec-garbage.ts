import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Used buffers that may lie about in the process, some twice this with what a message is put together from. */
const COLLECT_EVERY_BYTES = 4 * 1024 * 1024;

/**
 * Counts the bytes that went through buffers made for one message each, and has them collected in time.
 *
 * V8 sees a buffer as a small object and looks at the memory behind it only from some 64 MB on: a command that
 * writes 10 GiB, or 200 MB slowly, would cost that much of garbage. A collection of the young generation takes
 * some milliseconds and frees all of it, since a message is done with within a moment. One counter for all execs
 * of a connection, so that many at once have the same bound.
 */
export class BufferGarbage {
  readonly #collect: () => void;
  #bytes = 0;

  constructor(collect: () => void = youngCollector()) {
    this.#collect = collect;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes < COLLECT_EVERY_BYTES) return;
    this.#bytes = 0;
    this.#collect();
  }
}

/** V8's own `gc`, which a context made under this flag has; no other context gets it. */
function youngCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  return typeof collect === 'function' ? () => collect({ type: 'minor' }) : () => undefined;
}

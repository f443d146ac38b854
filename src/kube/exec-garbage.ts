import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Used buffers that may lie about in the process, some twice this with what a message is put together from. */
const COLLECT_EVERY_BYTES = 2 * 1024 * 1024;
/**
 * Growth of what buffers hold, over the least since the last full collection, at which there is another one. A full
 * collection takes some 10 ms for each 40 MB of heap, and a stream of 200 MB through a tool has some ten of them,
 * about as many as V8 makes of its own accord without any of this.
 */
const FULL_AFTER_BYTES = 16 * 1024 * 1024;

export interface Collector {
  /** Objects that have not lived through a collection or two. */
  young(): void;
  full(): void;
  /** Bytes of all buffers of the process, used ones that nobody has collected included. */
  heldBytes(): number;
}

/**
 * Counts the bytes that went through buffers made for one message each, and has them collected in time.
 *
 * V8 sees a buffer as a small object and looks at the memory behind it only from some 64 MB on: a command that
 * writes 10 GiB, or 200 MB slowly, would cost that much of garbage. A collection of the young generation takes a
 * millisecond or two and frees nearly all of it, since a message is done with within a moment. Not always: a buffer
 * that was on its way during two collections becomes old, and what it refers to stays with it, so that now and then
 * a full collection is due. One counter for all execs of a connection, so that many at once have the same bound, and
 * one for what a program of this machine is given.
 */
export class BufferGarbage {
  readonly #collector: Collector;
  #bytes = 0;
  /** The least that was held before a young collection, since the last full one. */
  #floorBytes: number | undefined;

  constructor(collector: Collector = v8Collector()) {
    this.#collector = collector;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes < COLLECT_EVERY_BYTES) return;
    this.#bytes = 0;
    // Looked at before, not after: what a collection finds is freed by a thread of its own, a little later.
    const held = this.#collector.heldBytes();
    this.#floorBytes = Math.min(this.#floorBytes ?? held, held);
    if (held - this.#floorBytes < FULL_AFTER_BYTES) {
      this.#collector.young();
    } else {
      this.#floorBytes = undefined;
      this.#collector.full();
    }
  }
}

let known: Collector | undefined;

/** One for the process: it costs a context. */
function v8Collector(): Collector {
  known ??= newCollector();
  return known;
}

/** V8's own `gc`, which a context made under this flag has; no other context gets it. */
function newCollector(): Collector {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  const gc = typeof collect === 'function' ? collect : () => undefined;
  return {
    young: () => void gc({ type: 'minor' }),
    full: () => void gc({ type: 'major' }),
    heldBytes: () => process.memoryUsage().arrayBuffers,
  };
}

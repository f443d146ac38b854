import type { RawData, WebSocket } from 'ws';
import type { ExecConnection } from './exec-connection.ts';
import { ExecError, messageOf } from './exec-error.ts';
import type { BufferGarbage } from './exec-garbage.ts';
import { Liveness, type LivenessTiming } from './exec-liveness.ts';
import { type ExecTarget, nameOf, openExec } from './exec-open.ts';
import { type ByteSink, OrderedOutput } from './exec-output.ts';
import {
  CHANNEL,
  type ExecStatus,
  exitStatus,
  type Frame,
  parseKubeStatus,
  readFrame,
} from './exec-protocol.ts';
import { StdinPump } from './exec-stdin.ts';

export type { ExecTarget } from './exec-open.ts';
export type { ByteSink } from './exec-output.ts';
export type { ExecStatus } from './exec-protocol.ts';

export interface ExecTiming extends LivenessTiming {
  /** For connecting and the upgrade. */
  readonly openMs: number;
  /** For the rest of a status that is no JSON yet. */
  readonly statusMs: number;
}

export const DEFAULT_TIMING: ExecTiming = {
  openMs: 30_000,
  pingMs: 10_000,
  pongMs: 20_000,
  stalledMs: 300_000,
  statusMs: 5_000,
};

export interface ExecOptions extends ExecTarget {
  /** Asked for a chunk only when the network has taken the ones before. Left out: the command has no input. */
  readonly stdin?: AsyncIterable<Uint8Array>;
  /** Chunks are views on network buffers, some 32 KiB; a sink that keeps one keeps its buffer. */
  readonly stdout?: ByteSink;
  readonly stderr?: ByteSink;
  /** Ends the connection, not the command: see the sandbox for killing what runs. */
  readonly signal?: AbortSignal;
  readonly timing?: Partial<ExecTiming>;
}

/**
 * Runs a command in a pod's container and resolves with its exit code, after all of its output was taken by the
 * sinks. Settles exactly once whatever the server, the pod, the source or a sink does; rejects with `ExecError`,
 * or with the signal's reason. Memory is bounded whatever the sizes: some 1 MiB in each direction.
 */
export async function exec(connection: ExecConnection, options: ExecOptions): Promise<ExecStatus> {
  const timing = { ...DEFAULT_TIMING, ...options.timing };
  const streams = {
    stdin: options.stdin !== undefined,
    // The API server refuses an exec without any stream.
    stdout: options.stdout !== undefined || options.stderr === undefined,
    stderr: options.stderr !== undefined,
  };
  const socket = await openExec(connection, options, streams, timing.openMs, options.signal);
  return await new Conversation(socket, options, timing, connection.garbage).ended;
}

/** What happens on the connection, in the order in which it must be dealt with. */
type Item = Frame | { readonly kind: 'Gone'; readonly why: string };

/** A status is below 4 KiB; the rest is a server that makes no sense. */
const MAX_STATUS_BYTES = 64 * 1024;

class Conversation {
  readonly ended: Promise<ExecStatus>;
  readonly #socket: WebSocket;
  readonly #options: ExecOptions;
  readonly #timing: ExecTiming;
  readonly #garbage: BufferGarbage;
  readonly #where: string;
  readonly #output: OrderedOutput<Item>;
  readonly #stdin: StdinPump | undefined;
  readonly #liveness: Liveness;
  readonly #resolve: (status: ExecStatus) => void;
  readonly #reject: (error: unknown) => void;
  #status = Buffer.alloc(0);
  #statusTimer: NodeJS.Timeout | undefined;
  #socketError: Error | undefined;

  constructor(socket: WebSocket, options: ExecOptions, timing: ExecTiming, garbage: BufferGarbage) {
    const { promise, resolve, reject } = Promise.withResolvers<ExecStatus>();
    this.ended = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#socket = socket;
    this.#options = options;
    this.#garbage = garbage;
    this.#timing = timing;
    this.#where = nameOf(options);
    this.#output = new OrderedOutput<Item>(socket, (item) => this.#take(item), this.#fail);
    this.#stdin = options.stdin === undefined ? undefined : new StdinPump(socket, options.stdin, garbage);
    this.#liveness = new Liveness(socket, timing, () => this.#traffic(), this.#silent);
    this.#listen();
    this.#stdin?.run().catch(this.#fail);
  }

  #listen(): void {
    const { signal } = this.#options;
    signal?.addEventListener('abort', this.#abort, { once: true });
    this.#socket.on('message', this.#receive);
    this.#socket.on('error', (error) => {
      this.#socketError = error;
    });
    this.#socket.on('close', this.#gone);
    if (signal?.aborted === true) this.#abort();
    else if (this.#socket.readyState === this.#socket.OPEN) this.#socket.resume();
    else this.#gone();
  }

  readonly #receive = (data: RawData): void => {
    this.#liveness.seen();
    try {
      const message = asBytes(data);
      this.#garbage.add(message.length);
      this.#output.push(readFrame(message), message.length);
    } catch (error) {
      this.#fail(error);
    }
  };

  readonly #gone = (): void => {
    this.#stdin?.stop();
    const why = this.#socketError === undefined ? 'the connection was closed' : this.#socketError.message;
    this.#output.push({ kind: 'Gone', why }, 0);
  };

  #take(item: Item): void | Promise<void> {
    switch (item.kind) {
      case 'Stdout':
        return this.#deliver(this.#options.stdout, item.bytes);
      case 'Stderr':
        return this.#deliver(this.#options.stderr, item.bytes);
      case 'Status':
        return this.#takeStatus(item.bytes);
      case 'Closed':
        return this.#takeClosed(item.channel);
      case 'Gone':
        return this.#fail(this.#withoutStatus(item.why));
      case 'Ignored':
        return;
      default:
        item satisfies never;
    }
  }

  #deliver(sink: ByteSink | undefined, bytes: Uint8Array): void | Promise<void> {
    if (sink === undefined || bytes.length === 0) return;
    try {
      return sink.write(bytes)?.catch(sinkFailed);
    } catch (error) {
      sinkFailed(error);
    }
  }

  #takeStatus(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#status = Buffer.concat([this.#status, bytes]);
    const status = parseKubeStatus(this.#status.toString('utf8'));
    if (status !== undefined) {
      const exit = exitStatus(status, this.#where);
      this.#finish(() => this.#resolve(exit));
    } else if (this.#status.length > MAX_STATUS_BYTES) {
      this.#fail(this.#malformed());
    } else {
      this.#statusTimer ??= setTimeout(() => this.#fail(this.#malformed()), this.#timing.statusMs);
    }
  }

  #takeClosed(channel: number): void {
    if (channel === CHANNEL.stdin) this.#stdin?.stop();
    if (channel === CHANNEL.status) this.#fail(this.#withoutStatus('the server closed the status channel'));
  }

  #withoutStatus(why: string): ExecError {
    if (this.#status.length > 0) return this.#malformed();
    return new ExecError(
      'Disconnected',
      `exec in ${this.#where}: no exit status came, the command may still run: ${why}`,
    );
  }

  #malformed(): ExecError {
    return new ExecError(
      'Protocol',
      `exec in ${this.#where}: the status is no Status object: ${this.#status.toString('utf8', 0, 200)}`,
    );
  }

  #traffic() {
    return { sinkBusy: this.#output.busy, stdinSentBytes: this.#stdin?.sentBytes ?? 0 };
  }

  readonly #silent = (silentMs: number): void => {
    const message = `exec in ${this.#where}: no answer to a ping for ${Math.round(silentMs)} ms; the command may still run`;
    this.#fail(new ExecError('Unresponsive', message));
  };

  readonly #abort = (): void => {
    this.#fail(this.#options.signal?.reason);
  };

  readonly #fail = (error: unknown): void => {
    this.#finish(() => this.#reject(error));
  };

  /** The first caller settles; later calls find a settled promise and everything stopped. */
  #finish(settle: () => void): void {
    settle();
    this.#options.signal?.removeEventListener('abort', this.#abort);
    clearTimeout(this.#statusTimer);
    this.#liveness.stop();
    this.#output.stop();
    this.#stdin?.stop();
    this.#socket.terminate();
  }
}

function asBytes(data: RawData): Uint8Array {
  if (Array.isArray(data)) return Buffer.concat(data);
  return data instanceof ArrayBuffer ? new Uint8Array(data) : data;
}

function sinkFailed(cause: unknown): never {
  throw new ExecError('SinkFailed', `exec: the sink of the output failed: ${messageOf(cause)}`, { cause });
}

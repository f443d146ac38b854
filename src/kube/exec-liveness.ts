import type { WebSocket } from 'ws';

export interface LivenessTiming {
  /** A ping after this long without a message. */
  readonly pingMs: number;
  /** Dead after this long without any sign, when the server is free to answer. */
  readonly pongMs: number;
  /** The same when it may be waiting for the command to read its input. */
  readonly stalledMs: number;
}

/** What the connection is doing, asked at each beat. */
export interface Traffic {
  /** Output waits for our own sink: the socket is not being read. */
  readonly sinkBusy: boolean;
  readonly stdinSentBytes: number;
}

/**
 * Tells a connection on which nobody answers from one on which nothing happens.
 *
 * An API server reads a connection's messages one by one and hands input on before it reads the next: while a
 * command does not read its input, a ping behind that input is not answered. So an unanswered ping counts only
 * when no input was sent after the last answered one; else the longer `stalledMs` holds.
 * Nothing is sent while our sink is behind: the server may have ended and closed already, a message to it would
 * be answered by a reset, and the output still under way would be lost with it.
 */
export class Liveness {
  readonly #socket: WebSocket;
  readonly #timing: LivenessTiming;
  readonly #traffic: () => Traffic;
  readonly #onDead: (silentMs: number) => void;
  readonly #timer: NodeJS.Timeout;
  #silentSince = performance.now();
  #pingAt: number | undefined;
  #stdinAtPing = 0;
  #stdinAnswered = 0;

  constructor(
    socket: WebSocket,
    timing: LivenessTiming,
    traffic: () => Traffic,
    onDead: (silentMs: number) => void,
  ) {
    this.#socket = socket;
    this.#timing = timing;
    this.#traffic = traffic;
    this.#onDead = onDead;
    socket.on('pong', () => this.#answered());
    this.#timer = setInterval(() => this.#beat(), Math.max(1, Math.min(timing.pingMs, timing.pongMs) / 2));
  }

  /** A message came. */
  seen(): void {
    this.#silentSince = performance.now();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #answered(): void {
    this.#pingAt = undefined;
    this.#stdinAnswered = this.#stdinAtPing;
    this.seen();
  }

  #beat(): void {
    const now = performance.now();
    const { sinkBusy, stdinSentBytes } = this.#traffic();
    if (sinkBusy) {
      this.seen();
      if (this.#pingAt !== undefined) this.#pingAt = now;
      return;
    }
    if (this.#pingAt === undefined) {
      if (now - this.#silentSince < this.#timing.pingMs) return;
      this.#pingAt = now;
      this.#stdinAtPing = stdinSentBytes;
      this.#socket.ping();
      return;
    }
    const silentMs = now - Math.max(this.#silentSince, this.#pingAt);
    const mayBeBlocked = stdinSentBytes > this.#stdinAnswered;
    if (silentMs >= (mayBeBlocked ? this.#timing.stalledMs : this.#timing.pongMs)) this.#onDead(silentMs);
  }
}

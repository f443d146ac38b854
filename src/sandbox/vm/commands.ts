import { type Clock, sleep } from '../../kube/clock.ts';
import type { ByteSink } from '../../kube/exec.ts';
import type { CommandEnd, CommandStreams, Commands } from '../command/commands.ts';
import { type EndingOptions, inputOf, killCommand, untilEnded } from '../command/ending.ts';
import { markedCommand } from '../command/marked-command.ts';
import { SandboxLostError } from '../port.ts';
import { type MachineConnection, type SessionEnd, UnreachableError } from './connection.ts';
import { Frame } from './frame.ts';
import { sessionLimit } from './session-limit.ts';

export interface MachineCommandsOptions {
  readonly connection: MachineConnection;
  readonly clock: Clock;
  /** Ids that are used once. */
  readonly newId: () => string;
}

/** sshd allows ten sessions on one connection (MaxSessions): the connection's own, one for kills, and these. */
const MAX_SESSIONS = 8;
/** A machine whose object says that all is well, and which does not answer for so long, is given up. */
const SILENT_MS = 30_000;
const RETRY_MS = 1_000;

/** Marked commands in one machine, through ssh. */
export class MachineCommands implements Commands {
  readonly #options: MachineCommandsOptions;
  readonly #limit = sessionLimit(MAX_SESSIONS);

  constructor(options: MachineCommandsOptions) {
    this.#options = options;
  }

  get where(): string {
    return this.#options.connection.where;
  }

  async run(id: string, command: readonly string[], streams: CommandStreams): Promise<CommandEnd> {
    const { signal } = streams;
    signal?.throwIfAborted();
    const leave = await this.#limit.enter(signal);
    try {
      await this.#answering(signal);
      return await this.#runNow(id, command, streams);
    } finally {
      leave();
    }
  }

  async runPlain(
    command: readonly string[],
    options: { readonly timeoutMs: number; readonly signal?: AbortSignal; readonly stdout?: ByteSink },
  ): Promise<number> {
    const { stdout, signal, timeoutMs } = options;
    const late = new AbortController();
    const cancel = this.#options.clock.after(timeoutMs, () => late.abort());
    const either = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]);
    const frame = new Frame(command, this.#options.newId, undefined);
    try {
      const end = await this.#session(frame, { signal: either, ...(stdout === undefined ? {} : { stdout }) });
      signal?.throwIfAborted();
      const exitCode = frame.exitCode(end.exit);
      if (exitCode !== undefined) return exitCode;
      const why = end.exit === undefined ? `no end after ${timeoutMs} ms` : end.complaint;
      throw new UnreachableError(`${command[0]} in ${this.where}: ${why}`);
    } finally {
      cancel();
    }
  }

  async #runNow(id: string, command: readonly string[], streams: CommandStreams): Promise<CommandEnd> {
    const { stdin, stdout } = streams;
    const { clock, newId } = this.#options;
    const cut = new AbortController();
    const begunMs = clock.monotonicMs();
    const input =
      stdin === undefined
        ? undefined
        : inputOf(this.#ending, { id, begunMs }, newId(), stdin, streams.stderr);
    const frame = new Frame(
      markedCommand(id, command, input?.endMark),
      newId,
      input?.stderr ?? streams.stderr,
    );
    const running = this.#session(frame, {
      signal: cut.signal,
      ...(stdout === undefined ? {} : { stdout }),
      ...(input === undefined ? {} : { stdin: input.source, onEnd: () => input.source.end() }),
    });
    const sent = { id, begunMs, running, input: input?.source, cut: () => cut.abort() };
    try {
      return await untilEnded(this.#ending, sent, streams, (end) =>
        this.#checked(end, frame, { id, begunMs }),
      );
    } catch (error) {
      throw input?.source.failure?.cause ?? error;
    } finally {
      running.catch(() => undefined);
    }
  }

  /** All that the command printed has arrived when it settles. */
  async #session(
    frame: Frame,
    streams: Omit<Parameters<MachineConnection['session']>[1], 'stderr'>,
  ): Promise<SessionEnd> {
    try {
      return await this.#options.connection.session(frame.words, { ...streams, stderr: frame.stderr });
    } finally {
      await frame.flush();
    }
  }

  get #ending(): EndingOptions {
    return {
      where: this.where,
      clock: this.#options.clock,
      runPlain: (command, options) => this.runPlain(command, options),
      // sshd answers and nothing can be run: the guest has no process left. Else nobody knows.
      judge: async (error) => {
        if (error instanceof SandboxLostError) return 'Gone';
        return (await this.#lost()) === undefined ? 'Away' : 'Gone';
      },
    };
  }

  async #checked(
    end: SessionEnd,
    frame: Frame,
    command: { readonly id: string; readonly begunMs: number },
  ): Promise<CommandEnd> {
    const exitCode = frame.exitCode(end.exit);
    if (exitCode !== undefined) return { kind: 'Exited', exitCode };
    // A guest that dies takes its connection along; only later its object says so, or nobody answers any more.
    await this.#answering(undefined);
    const lost = await this.#lost();
    if (lost !== undefined) throw lost;
    if (!frame.begun) throw new Error(`ssh to ${this.where} started no command: ${end.complaint}`);
    await killCommand(this.#ending, command);
    throw new Error(`ssh to ${this.where} broke while the command ran: ${end.complaint}`);
  }

  /** Waits out a short silence. Rejects with `SandboxLostError` after a long one. */
  async #answering(signal: AbortSignal | undefined): Promise<void> {
    const { connection, clock } = this.#options;
    const begun = clock.monotonicMs();
    for (;;) {
      try {
        return await connection.connect();
      } catch (error) {
        if (!(error instanceof UnreachableError)) throw error;
        if (clock.monotonicMs() - begun >= SILENT_MS)
          throw new SandboxLostError(
            `sandbox ${this.where} is given up: it did not answer for ${SILENT_MS / 1000} s: ${error.message}`,
            { cause: error },
          );
        await sleep(clock, RETRY_MS, signal);
        signal?.throwIfAborted();
      }
    }
  }

  /** Undefined also when nobody can say. */
  async #lost(): Promise<SandboxLostError | undefined> {
    try {
      await this.#options.connection.connect();
      const now = await this.#options.connection.outlook();
      if (now.kind !== 'Gone') return undefined;
      return new SandboxLostError(`sandbox ${this.where} is gone: ${now.why}`);
    } catch (error) {
      return error instanceof SandboxLostError ? error : undefined;
    }
  }
}

import { type Clock, sleep } from '../../kube/clock.ts';
import type { ByteSink } from '../../kube/exec.ts';
import { CappedOutput } from '../command/collect.ts';
import type { CommandEnd, CommandStreams, Commands } from '../command/commands.ts';
import { type EndingOptions, inputOf, untilEnded } from '../command/ending.ts';
import { EndMarkFilter } from '../command/input.ts';
import { markedCommand, shellCommand, shellScript } from '../command/marked-command.ts';
import { ROOM_FOR_PROCESSES, SandboxLostError } from '../port.ts';
import { askPodman, complaintOf, type PodmanCli, type PodmanExit, runPodman } from './cli.ts';

export interface PodmanCommandsOptions {
  readonly cli: PodmanCli;
  /** Options before the subcommand, the same for every call about one container. */
  globalArgs(): readonly string[];
  readonly container: string;
  readonly clock: Clock;
  /** Ids that are used once. */
  readonly newId: () => string;
}

const START_ATTEMPTS = 3;
const START_PAUSE_MS = 1_000;
const START_TIMEOUT_MS = 20_000;
/** Says on stderr that the command begins: without it an exit code may be podman's own (125, 126, 127). */
const BEGIN = 'printf %s "$1" >&2; shift; exec "$@"';

/** Marked commands in one container, through `podman exec`. */
export class PodmanCommands implements Commands {
  readonly #options: PodmanCommandsOptions;

  constructor(options: PodmanCommandsOptions) {
    this.#options = options;
  }

  get where(): string {
    return `container ${this.#options.container}`;
  }

  async run(id: string, command: readonly string[], streams: CommandStreams): Promise<CommandEnd> {
    streams.signal?.throwIfAborted();
    const cut = new AbortController();
    const begunMs = this.#options.clock.monotonicMs();
    const input =
      streams.stdin === undefined
        ? undefined
        : inputOf(this.#ending, { id, begunMs }, this.#options.newId(), streams.stdin, streams.stderr);
    const begun = new Beginning(this.#options.newId(), input?.stderr ?? streams.stderr);
    const words = shellScript(BEGIN, begun.mark, ...markedCommand(id, command, input?.endMark));
    const running = runPodman(this.#options.cli, this.#execArgs(words, input !== undefined), {
      stderr: begun.sink,
      signal: cut.signal,
      ...(streams.stdout === undefined ? {} : { stdout: streams.stdout }),
      ...(input === undefined ? {} : { stdin: input.source }),
    });
    const sent = { id, begunMs, running, input: input?.source, cut: () => cut.abort() };
    try {
      return await untilEnded(this.#ending, sent, streams, (exit) => this.#checked(exit, begun));
    } catch (error) {
      throw input?.source.failure?.cause ?? error;
    } finally {
      await begun.sink.flush();
      await input?.stderr.flush();
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
    try {
      const exitCode = await runPodman(this.#options.cli, this.#execArgs(command, false), {
        signal: either,
        ...(stdout === undefined ? {} : { stdout }),
      });
      signal?.throwIfAborted();
      if (exitCode !== undefined) return exitCode;
      throw new Error(`${command[0]} in ${this.where}: no end after ${timeoutMs} ms`);
    } finally {
      cancel();
    }
  }

  #execArgs(words: readonly string[], withInput: boolean): readonly string[] {
    const { container } = this.#options;
    return [...this.#options.globalArgs(), 'exec', ...(withInput ? ['-i'] : []), container, ...words];
  }

  get #ending(): EndingOptions {
    return {
      where: this.where,
      clock: this.#options.clock,
      runPlain: (command, options) => this.runPlain(command, options),
      judge: async () => ((await this.#lost()) === undefined ? 'Stuck' : 'Gone'),
    };
  }

  async #checked(exitCode: PodmanExit, begun: Beginning): Promise<CommandEnd> {
    // A container that is removed kills its commands, which looks like any other kill.
    if (!begun.seen || exitCode === undefined || exitCode > 124) {
      const lost = await this.#lost();
      if (lost !== undefined) throw lost;
    }
    if (begun.seen && exitCode !== undefined) return { kind: 'Exited', exitCode };
    const what = exitCode === undefined ? 'podman was killed' : begun.complaint;
    if (!(await this.#startsProcesses()))
      throw new SandboxLostError(`sandbox ${this.where} is given up: it starts no process any more: ${what}`);
    throw new Error(`podman exec in ${this.where} failed: ${what}`);
  }

  /** A command that could not be started may only have had a bad moment. */
  async #startsProcesses(): Promise<boolean> {
    for (let attempt = 0; attempt < START_ATTEMPTS; attempt++) {
      if (attempt > 0) await sleep(this.#options.clock, START_PAUSE_MS);
      const words = shellCommand(ROOM_FOR_PROCESSES);
      const exitCode = await this.runPlain(words, { timeoutMs: START_TIMEOUT_MS }).catch(() => undefined);
      if (exitCode === 0) return true;
    }
    return false;
  }

  async #lost(): Promise<SandboxLostError | undefined> {
    const { cli, container } = this.#options;
    const state = await askPodman(cli, [
      ...this.#options.globalArgs(),
      ...['container', 'inspect', '--format', '{{.State.Running}}', container],
    ]).catch(() => undefined);
    if (state === undefined || (state.exitCode === 0 && state.stdout === 'true')) return undefined;
    if (state.exitCode === 0) return new SandboxLostError(`sandbox ${this.where} is gone: it has ended`);
    if (!/no such|no container/i.test(state.complaint)) return undefined;
    return new SandboxLostError(`sandbox ${this.where} is gone: it was removed`);
  }
}

/** Takes the beginning's mark out of stderr. What comes before it is podman's own. */
class Beginning {
  readonly mark: string;
  readonly sink: EndMarkFilter;
  seen = false;
  readonly #before = new CappedOutput(2048);

  constructor(mark: string, sink: ByteSink | undefined) {
    this.mark = mark;
    const split: ByteSink = {
      write: (chunk) => (this.seen ? sink?.write(chunk) : this.#before.write(chunk)),
    };
    this.sink = new EndMarkFilter(mark, split, () => {
      this.seen = true;
    });
  }

  get complaint(): string {
    return complaintOf(this.#before);
  }
}

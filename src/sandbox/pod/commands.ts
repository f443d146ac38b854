import { sleep } from '../../kube/clock.ts';
import type { ByteSink } from '../../kube/exec.ts';
import { ExecError, type ExecFailure } from '../../kube/exec-error.ts';
import { POD } from '../../kube/kinds.ts';
import type { KubeClient } from '../../kube/port.ts';
import type { CommandEnd, CommandStreams, Commands } from '../command/commands.ts';
import { type EndingOptions, inputOf, killCommand, untilEnded } from '../command/ending.ts';
import { markedCommand, shellCommand } from '../command/marked-command.ts';
import { ROOM_FOR_PROCESSES, SandboxLostError } from '../port.ts';
import { execInPod, type PodExecOptions } from './exec.ts';
import { outlook, type PodOutlook } from './state.ts';

export interface PodCommandsOptions extends PodExecOptions {
  readonly client: Pick<KubeClient, 'get'>;
  /** The pod that is meant, where its uid is known. */
  readonly uid?: string;
  /** Ids that are used once. */
  readonly newId: () => string;
}

const OUTLOOK_MS = 10_000;
const START_ATTEMPTS = 3;
const START_PAUSE_MS = 1_000;
/** The node or its runtime speaks, not the network on the way to it. */
const RUNTIME_FAILURES: ReadonlySet<ExecFailure> = new Set(['NotStarted', 'Broken', 'Unresponsive']);
/** The exit code of SIGKILL: what a command gets when its pod is deleted, and when it runs out of memory. */
const KILLED = 137;

/** Marked commands in one pod, and their end. */
export class PodCommands implements Commands {
  readonly #options: PodCommandsOptions;

  constructor(options: PodCommandsOptions) {
    this.#options = options;
  }

  get where(): string {
    return `pod ${this.#options.namespace}/${this.#options.pod}`;
  }

  /**
   * Runs `command`, whose processes carry `id`. At the deadline, at an abort and when the connection is lost they
   * are killed. Rejects with `SandboxLostError`, the signal's reason, the source's own error, or `ExecError`.
   */
  async run(id: string, command: readonly string[], streams: CommandStreams): Promise<CommandEnd> {
    streams.signal?.throwIfAborted();
    const cut = new AbortController();
    const begunMs = this.#options.clock.monotonicMs();
    const input =
      streams.stdin === undefined
        ? undefined
        : inputOf(this.#ending, { id, begunMs }, this.#options.newId(), streams.stdin, streams.stderr);
    const running = execInPod(
      this.#options,
      markedCommand(id, command, input?.endMark),
      input === undefined ? streams : { ...streams, stdin: input.source, stderr: input.stderr },
      cut.signal,
    );
    const sent = { id, begunMs, running, input: input?.source, cut: () => cut.abort() };
    try {
      return await untilEnded(this.#ending, sent, streams, ({ exitCode }) =>
        this.#checked({ kind: 'Exited', exitCode }),
      );
    } catch (error) {
      const failure = input?.source.failure;
      throw failure === undefined ? await this.#afterFailure(id, begunMs, error) : failure.cause;
    } finally {
      await input?.stderr.flush();
    }
  }

  /** A short command without a mark, for our own housekeeping. */
  async runPlain(
    command: readonly string[],
    options: { readonly timeoutMs: number; readonly signal?: AbortSignal; readonly stdout?: ByteSink },
  ): Promise<number> {
    const { stdout, signal, timeoutMs } = options;
    const deadline = new AbortController();
    const late = new ExecError(
      'Unresponsive',
      `${command[0]} in ${this.where}: no end after ${timeoutMs} ms`,
    );
    const cancel = this.#options.clock.after(timeoutMs, () => deadline.abort(late));
    const either = signal === undefined ? deadline.signal : AbortSignal.any([signal, deadline.signal]);
    try {
      const { exitCode } = await execInPod(
        this.#options,
        command,
        stdout === undefined ? {} : { stdout },
        either,
      );
      return exitCode;
    } finally {
      cancel();
    }
  }

  async outlook(signal?: AbortSignal): Promise<PodOutlook> {
    const { client, namespace, pod, container, uid } = this.#options;
    const found = await client.get(POD, { namespace, name: pod }, signal === undefined ? {} : { signal });
    return outlook(found, container, uid);
  }

  get #ending(): EndingOptions {
    return {
      where: this.where,
      clock: this.#options.clock,
      runPlain: (command, options) => this.runPlain(command, options),
      judge: (error) => this.#judge(error),
    };
  }

  async #judge(error: unknown): Promise<'Gone' | 'Stuck' | 'Away'> {
    if (!(error instanceof ExecError)) return 'Away';
    if (error.reason === 'NotFound' || error.reason === 'NotRunning') return 'Gone';
    if (!RUNTIME_FAILURES.has(error.reason)) return 'Away';
    const now = await this.outlook(AbortSignal.timeout(OUTLOOK_MS)).catch(() => undefined);
    if (now === undefined) return 'Away';
    return now.kind === 'Running' ? 'Stuck' : 'Gone';
  }

  /** A pod that is being deleted kills its commands, which looks like any other kill. */
  async #checked(end: Extract<CommandEnd, { kind: 'Exited' }>): Promise<CommandEnd> {
    if (end.exitCode === KILLED) {
      const lost = await this.#lost();
      if (lost !== undefined) throw lost;
    }
    return end;
  }

  async #afterFailure(id: string, begunMs: number, error: unknown): Promise<unknown> {
    if (!(error instanceof ExecError)) return error;
    if (error.reason === 'NotFound' || error.reason === 'NotRunning') {
      return new SandboxLostError(`sandbox ${this.where} is gone: ${error.message}`, { cause: error });
    }
    if (error.maybeStarted) await killCommand(this.#ending, { id, begunMs });
    if (error.reason === 'NotStarted' && !(await this.#startsProcesses())) {
      return new SandboxLostError(
        `sandbox ${this.where} is given up: it starts no process any more: ${error.message}`,
        { cause: error },
      );
    }
    return (await this.#lost()) ?? error;
  }

  /** A command that could not be started may only have had a bad moment. */
  async #startsProcesses(): Promise<boolean> {
    for (let attempt = 0; attempt < START_ATTEMPTS; attempt++) {
      if (attempt > 0) await sleep(this.#options.clock, START_PAUSE_MS);
      try {
        return (await this.runPlain(shellCommand(ROOM_FOR_PROCESSES), { timeoutMs: OUTLOOK_MS })) === 0;
      } catch (error) {
        if ((await this.#judge(error)) !== 'Stuck') return true;
      }
    }
    return false;
  }

  async #lost(): Promise<SandboxLostError | undefined> {
    try {
      const now = await this.outlook(AbortSignal.timeout(OUTLOOK_MS));
      return now.kind === 'Gone'
        ? new SandboxLostError(`sandbox ${this.where} is gone: ${now.why}`)
        : undefined;
    } catch {
      // Not known: the API server does not answer. The caller has the first error.
      return undefined;
    }
  }
}

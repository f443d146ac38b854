import { sleep } from '../../kube/clock.ts';
import type { ByteSink } from '../../kube/exec.ts';
import { ExecError } from '../../kube/exec-error.ts';
import { POD } from '../../kube/kinds.ts';
import type { KubeClient } from '../../kube/port.ts';
import type { CommandEnd, CommandStreams, Commands } from '../command/commands.ts';
import { CommandInput, EndMarkFilter } from '../command/input.ts';
import { KILL_SCRIPT } from '../command/kill-script.ts';
import { markedCommand, shellScript } from '../command/marked-command.ts';
import { SandboxLostError } from '../port.ts';
import { execInPod, type PodExecOptions } from './exec.ts';
import { outlook, type PodOutlook } from './state.ts';

export interface PodCommandsOptions extends PodExecOptions {
  readonly client: Pick<KubeClient, 'get'>;
  /** The pod that is meant, where its uid is known. */
  readonly uid?: string;
  /** Ids that are used once. */
  readonly newId: () => string;
}

/** For one attempt at killing; it takes some 60 ms. */
const KILL_ATTEMPT_MS = 10_000;
const KILL_ATTEMPTS = 2;
/** After its processes are dead, an exec gets this long to say so with the rest of its output. */
const SETTLE_MS = 2_000;
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
    const { signal, timeoutMs } = streams;
    signal?.throwIfAborted();
    const cut = new AbortController();
    const input = streams.stdin === undefined ? undefined : this.#input(id, streams.stdin, streams.stderr);
    const running = execInPod(
      this.#options,
      markedCommand(id, command, input?.endMark),
      input === undefined ? streams : { ...streams, stdin: input.source, stderr: input.stderr },
      cut.signal,
    );
    const stop = Promise.withResolvers<'TimedOut' | 'Aborted'>();
    const onAbort = () => stop.resolve('Aborted');
    signal?.addEventListener('abort', onAbort, { once: true });
    const cancelTimer =
      timeoutMs === undefined
        ? undefined
        : this.#options.clock.after(timeoutMs, () => stop.resolve('TimedOut'));
    try {
      const first = await Promise.race([running, stop.promise]);
      if (input?.source.failure !== undefined) throw input.source.failure.cause;
      if (typeof first !== 'string') return await this.#checked({ kind: 'Exited', exitCode: first.exitCode });
      await this.#end(id, running, cut);
      if (first === 'Aborted') throw signal?.reason;
      return { kind: 'TimedOut' };
    } catch (error) {
      const failure = input?.source.failure;
      throw failure === undefined ? await this.#afterFailure(id, error) : failure.cause;
    } finally {
      cancelTimer?.();
      signal?.removeEventListener('abort', onAbort);
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

  /** Kills what carries `id`; false when that could not be made sure. */
  async kill(id: string): Promise<boolean> {
    for (let attempt = 0; attempt < KILL_ATTEMPTS; attempt++) {
      try {
        if ((await this.runPlain(shellScript(KILL_SCRIPT, id), { timeoutMs: KILL_ATTEMPT_MS })) === 0)
          return true;
      } catch (error) {
        // Nothing runs in a container that is gone.
        if (error instanceof ExecError && (error.reason === 'NotFound' || error.reason === 'NotRunning'))
          return true;
        await sleep(this.#options.clock, 200 * 2 ** attempt);
      }
    }
    return false;
  }

  async outlook(signal?: AbortSignal): Promise<PodOutlook> {
    const { client, namespace, pod, container, uid } = this.#options;
    const found = await client.get(POD, { namespace, name: pod }, signal === undefined ? {} : { signal });
    return outlook(found, container, uid);
  }

  #input(id: string, stdin: AsyncIterable<Uint8Array>, sink: ByteSink | undefined) {
    const endMark = this.#options.newId();
    const source = new CommandInput(stdin, () => this.kill(id));
    return { endMark, source, stderr: new EndMarkFilter(endMark, sink, () => source.end()) };
  }

  /** Kills the command and takes the rest of its output; afterwards its connection is closed. */
  async #end(id: string, running: Promise<unknown>, cut: AbortController): Promise<void> {
    const settled = running.then(
      () => true,
      () => true,
    );
    await this.kill(id);
    const inTime = await Promise.race([settled, sleep(this.#options.clock, SETTLE_MS).then(() => false)]);
    if (inTime) return;
    cut.abort();
    // It may have been about to start when it was looked for, and have got its mark only now.
    await this.kill(id);
  }

  /** A pod that is being deleted kills its commands, which looks like any other kill. */
  async #checked(end: Extract<CommandEnd, { kind: 'Exited' }>): Promise<CommandEnd> {
    if (end.exitCode === KILLED) {
      const lost = await this.#lost();
      if (lost !== undefined) throw lost;
    }
    return end;
  }

  async #afterFailure(id: string, error: unknown): Promise<unknown> {
    if (!(error instanceof ExecError)) return error;
    if (error.reason === 'NotFound' || error.reason === 'NotRunning') {
      return new SandboxLostError(`sandbox ${this.where} is gone: ${error.message}`, { cause: error });
    }
    if (error.maybeStarted) await this.kill(id);
    return (await this.#lost()) ?? error;
  }

  async #lost(): Promise<SandboxLostError | undefined> {
    try {
      const now = await this.outlook(AbortSignal.timeout(KILL_ATTEMPT_MS));
      return now.kind === 'Gone'
        ? new SandboxLostError(`sandbox ${this.where} is gone: ${now.why}`)
        : undefined;
    } catch {
      // Not known: the API server does not answer. The caller has the first error.
      return undefined;
    }
  }
}

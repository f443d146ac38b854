import { randomUUID } from 'node:crypto';
import { type Clock, systemClock } from '../kube/clock.ts';
import type { ExecConnection } from '../kube/exec-connection.ts';
import { errorFields, type Logger } from '../kube/log.ts';
import type { KubeClient } from '../kube/port.ts';
import { CappedOutput } from './collect.ts';
import { shellCommand, shellFile } from './marked-command.ts';
import { scratchPath } from './path.ts';
import { PodCommands } from './pod-commands.ts';
import { readPodFile, writePodFile } from './pod-files.ts';
import { startPod } from './pod-start.ts';
import { type ExecOptions, type ExecResult, type Sandbox, type SandboxRef, SCRATCH } from './port.ts';

export interface PodSandboxOptions {
  readonly connection: ExecConnection;
  /** Reads the pod, to tell a lost one from a lost connection. */
  readonly client: Pick<KubeClient, 'get'>;
  readonly ref: SandboxRef;
  readonly namespace: string;
  readonly pod: string;
  /** Where known: another pod of the same name is then not taken for it. */
  readonly uid?: string;
  /** Default `sandbox`. */
  readonly container?: string;
  /** Idempotent. */
  deletePod(): Promise<void>;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** Ids that are used once. */
  readonly newId?: () => string;
  /** Default 300 s (POD_START_TIMEOUT). */
  readonly startTimeoutMs?: number;
}

/** EXEC_TIMEOUT */
const EXEC_TIMEOUT_MS = 120_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;
/** An argument holds 128 KiB at the most, and a URL on its way through proxies often no more than some 8 KiB. */
const MAX_INLINE_COMMAND_BYTES = 4 * 1024;

/** A sandbox that is one container of a pod: whoever made or claimed the pod hands it over. */
export function podSandbox(options: PodSandboxOptions): Sandbox {
  return new PodSandbox(options);
}

class PodSandbox implements Sandbox {
  readonly ref: SandboxRef;
  readonly #options: PodSandboxOptions;
  readonly #commands: PodCommands;
  readonly #clock: Clock;
  readonly #newId: () => string;

  constructor(options: PodSandboxOptions) {
    this.ref = options.ref;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#newId = options.newId ?? randomUUID;
    this.#commands = new PodCommands({
      ...options,
      container: options.container ?? 'sandbox',
      clock: this.#clock,
      newId: this.#newId,
    });
  }

  async start(signal?: AbortSignal): Promise<void> {
    const startTimeoutMs = this.#options.startTimeoutMs ?? 300_000;
    await startPod(this.#commands, { clock: this.#clock, startTimeoutMs }, signal);
  }

  async exec(command: string, options: ExecOptions = {}): Promise<ExecResult> {
    const { stdin, ...others } = options;
    return await this.#run(command, stdin === undefined ? undefined : once(stdin), others);
  }

  async streamExec(
    command: string,
    chunks: AsyncIterable<Uint8Array>,
    options: Omit<ExecOptions, 'stdin'> = {},
  ): Promise<ExecResult> {
    return await this.#run(command, chunks, options);
  }

  async writeFile(
    path: string,
    bytes: Uint8Array,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<void> {
    await this.streamToFile(path, once(bytes), options);
  }

  async streamToFile(
    path: string,
    chunks: AsyncIterable<Uint8Array>,
    options: { readonly signal?: AbortSignal } = {},
  ) {
    const fileOptions = { newId: this.#newId, signal: options.signal };
    return await writePodFile(this.#commands, scratchPath(path), chunks, fileOptions);
  }

  readFile(path: string, options: { readonly signal?: AbortSignal } = {}): AsyncIterable<Uint8Array> {
    return readPodFile(this.#commands, scratchPath(path), { newId: this.#newId, signal: options.signal });
  }

  async cleanup(): Promise<void> {
    try {
      await this.#options.deletePod();
    } catch (error) {
      const fields = { namespace: this.#options.namespace, pod: this.#options.pod, ...errorFields(error) };
      this.#options.logger.warn(fields, 'sandbox pod not deleted; the reaper will try again');
    }
  }

  async linger(_sessionId: string): Promise<void> {
    await this.cleanup();
  }

  async #run(
    command: string,
    stdin: AsyncIterable<Uint8Array> | undefined,
    options: Omit<ExecOptions, 'stdin'>,
  ): Promise<ExecResult> {
    const { timeoutMs = EXEC_TIMEOUT_MS, maxOutputBytes = MAX_OUTPUT_BYTES, signal } = options;
    const stdout = new CappedOutput(maxOutputBytes);
    const stderr = new CappedOutput(maxOutputBytes);
    const id = this.#newId();
    const words = await this.#words(id, command, signal);
    const end = await this.#commands.run(id, words, {
      stdout,
      stderr,
      timeoutMs,
      ...(stdin === undefined ? {} : { stdin }),
      ...(signal === undefined ? {} : { signal }),
    });
    const output = {
      stdout: stdout.kept,
      stderr: stderr.kept,
      stdoutBytes: stdout.bytes,
      stderrBytes: stderr.bytes,
    };
    return end.kind === 'TimedOut' ? { ...output, kind: 'TimedOut', timeoutMs } : { ...output, ...end };
  }

  async #words(id: string, command: string, signal: AbortSignal | undefined): Promise<readonly string[]> {
    if (Buffer.byteLength(command) <= MAX_INLINE_COMMAND_BYTES) return shellCommand(command);
    const file = `${SCRATCH}/.command-${id}`;
    await this.writeFile(file, Buffer.from(command), signal === undefined ? {} : { signal });
    return shellFile(file);
  }
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}

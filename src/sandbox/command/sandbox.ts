import {
  type ExecOptions,
  type ExecResult,
  type Sandbox,
  SandboxLostError,
  type SandboxRef,
  SCRATCH,
} from '../port.ts';
import { CappedOutput } from './collect.ts';
import type { Commands } from './commands.ts';
import { readSandboxFile, writeSandboxFile } from './files.ts';
import { shellCommand, shellFile } from './marked-command.ts';
import { scratchPath } from './path.ts';

/** What differs between backends whose commands are words that run in a container. */
export interface CommandSandboxOptions {
  readonly ref: SandboxRef;
  readonly commands: Commands;
  /** Ids that are used once. */
  readonly newId: () => string;
  start(signal?: AbortSignal): Promise<void>;
  /** Idempotent; never rejects. */
  cleanup(): Promise<void>;
  /** Keeps it for the session's next run, else cleans up; never rejects. Left out: this backend keeps none. */
  linger?(sessionId: string): Promise<void>;
}

/** EXEC_TIMEOUT */
const EXEC_TIMEOUT_MS = 120_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;
/** An argument holds 128 KiB at the most, and a URL on its way through proxies often no more than some 8 KiB. */
const MAX_INLINE_COMMAND_BYTES = 4 * 1024;

/** The Sandbox port over a backend's commands. */
export function commandSandbox(options: CommandSandboxOptions): Sandbox {
  return new CommandSandbox({ ...options, commands: deletedWhenLost(options) });
}

/** What is left of a lost sandbox is deleted at once: its run must not find it again and take it for usable. */
function deletedWhenLost({ commands, cleanup }: CommandSandboxOptions): Commands {
  return {
    where: commands.where,
    async run(id, command, streams) {
      try {
        return await commands.run(id, command, streams);
      } catch (error) {
        if (error instanceof SandboxLostError) await cleanup();
        throw error;
      }
    },
    runPlain: (command, options) => commands.runPlain(command, options),
  };
}

class CommandSandbox implements Sandbox {
  readonly ref: SandboxRef;
  readonly #options: CommandSandboxOptions;

  constructor(options: CommandSandboxOptions) {
    this.ref = options.ref;
    this.#options = options;
  }

  async start(signal?: AbortSignal): Promise<void> {
    await this.#options.start(signal);
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
    const { commands, newId } = this.#options;
    return await writeSandboxFile(commands, scratchPath(path), chunks, { newId, signal: options.signal });
  }

  readFile(path: string, options: { readonly signal?: AbortSignal } = {}): AsyncIterable<Uint8Array> {
    const { commands, newId } = this.#options;
    return readSandboxFile(commands, scratchPath(path), { newId, signal: options.signal });
  }

  async cleanup(): Promise<void> {
    await this.#options.cleanup();
  }

  async linger(sessionId: string): Promise<void> {
    const { linger } = this.#options;
    await (linger === undefined ? this.cleanup() : linger(sessionId));
  }

  async #run(
    command: string,
    stdin: AsyncIterable<Uint8Array> | undefined,
    options: Omit<ExecOptions, 'stdin'>,
  ): Promise<ExecResult> {
    const { timeoutMs = EXEC_TIMEOUT_MS, maxOutputBytes = MAX_OUTPUT_BYTES, signal } = options;
    const stdout = new CappedOutput(maxOutputBytes);
    const stderr = new CappedOutput(maxOutputBytes);
    const id = this.#options.newId();
    const words = await this.#words(id, command, signal);
    const end = await this.#options.commands.run(id, words, {
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

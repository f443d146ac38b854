import { posix } from 'node:path';
import { CappedOutput } from './collect.ts';
import type { CommandEnd, Commands } from './commands.ts';
import { Handoff, pieces } from './handoff.ts';
import { shellScript } from './marked-command.ts';

export interface Written {
  readonly bytes: number;
  /** Newline bytes. */
  readonly lines: number;
}

export interface FileOptions {
  readonly newId: () => string;
  readonly signal: AbortSignal | undefined;
}

const READ_CHUNK_BYTES = 64 * 1024;
/** What a program says when it fails. */
const COMPLAINT_BYTES = 4096;
const HOUSEKEEPING_MS = 10_000;
const NEWLINE = 0x0a;

/** Beside the file first, then in its place: nobody sees half a file under its name. */
const WRITE_SCRIPT = 'mkdir -p -- "$3" && cat >"$2" && wc -c <"$2" && mv -f -- "$2" "$1"';
/**
 * A pipe or a device would be read for ever. The size is said first: a node can drop the last of what a command wrote
 * to a slow reader and call that a success (docs/adr/0003).
 */
const READ_SCRIPT =
  'if [ ! -e "$1" ]; then echo no such file >&2; exit 1; elif [ ! -f "$1" ]; then echo not a regular file >&2; exit 1; fi; size=$(wc -c <"$1") && echo $size >&2 && exec head -c "$size" -- "$1"';

/** Among what a login may say besides. */
const SIZE_LINE = /^\d+$/m;

/** `path` is one that `scratchPath` has returned. Whatever fails, the file of that name stays as it was. */
export async function writeSandboxFile(
  commands: Commands,
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  { newId, signal }: FileOptions,
): Promise<Written> {
  const id = newId();
  const part = `${path}.part-${id.slice(0, 8)}`;
  const source = new CountedSource(chunks);
  const stdout = new CappedOutput(COMPLAINT_BYTES);
  const stderr = new CappedOutput(COMPLAINT_BYTES);
  const command = shellScript(WRITE_SCRIPT, path, part, posix.dirname(path));
  try {
    const end = await commands.run(id, command, { stdin: source, stdout, stderr, ...optional(signal) });
    if (exitCode(end) !== 0)
      throw new Error(`writing ${path} in ${commands.where}: ${complaint(end, stderr)}`);
    const arrived = Number(text(stdout));
    if (arrived !== source.bytes) {
      throw new Error(`writing ${path} in ${commands.where}: ${arrived} of ${source.bytes} bytes arrived`);
    }
    return { bytes: source.bytes, lines: source.lines };
  } catch (error) {
    await removePart(commands, part);
    throw error;
  }
}

/** Chunks of at most 64 KiB, as many bytes as the file has at the beginning. Who stops reading early ends the command. */
export async function* readSandboxFile(
  commands: Commands,
  path: string,
  { newId, signal }: FileOptions,
): AsyncIterable<Uint8Array> {
  const id = newId();
  const stdout = new Handoff();
  const stderr = new CappedOutput(COMPLAINT_BYTES);
  const left = new AbortController();
  const either = signal === undefined ? left.signal : AbortSignal.any([signal, left.signal]);
  const running = commands
    .run(id, shellScript(READ_SCRIPT, path), { stdout, stderr, signal: either })
    .finally(() => stdout.end());
  // Looked at only after the last chunk; until then a rejection is not an unhandled one.
  running.catch(() => undefined);
  try {
    let arrived = 0;
    for await (const chunk of stdout) {
      arrived += chunk.length;
      yield* pieces(chunk, READ_CHUNK_BYTES);
    }
    const end = await running;
    if (exitCode(end) !== 0)
      throw new Error(`reading ${path} in ${commands.where}: ${complaint(end, stderr)}`);
    const size = SIZE_LINE.exec(text(stderr))?.[0];
    if (arrived !== Number(size))
      throw new Error(
        `reading ${path} in ${commands.where}: ${arrived} of ${size ?? 'unknown'} bytes arrived`,
      );
  } finally {
    stdout.abandon();
    left.abort();
    await running.catch(() => undefined);
  }
}

function optional(signal: AbortSignal | undefined): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

function exitCode(end: CommandEnd): number | undefined {
  return end.kind === 'Exited' ? end.exitCode : undefined;
}

function complaint(end: CommandEnd, stderr: CappedOutput): string {
  return `exit code ${exitCode(end) ?? 'unknown'}: ${text(stderr) || 'no message'}`;
}

function text(output: CappedOutput): string {
  return Buffer.from(output.kept).toString('utf8').trim();
}

async function removePart(commands: Commands, part: string): Promise<void> {
  try {
    await commands.runPlain(['rm', '-f', '--', part], { timeoutMs: HOUSEKEEPING_MS });
  } catch {
    // The sandbox does not answer; what is left of the file goes with it.
  }
}

/** Counts what passes. */
class CountedSource implements AsyncIterable<Uint8Array> {
  bytes = 0;
  lines = 0;
  readonly #chunks: AsyncIterable<Uint8Array>;

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks;
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    for await (const chunk of this.#chunks) {
      this.bytes += chunk.length;
      this.lines += newlines(chunk);
      yield chunk;
    }
  }
}

function newlines(chunk: Uint8Array): number {
  let count = 0;
  for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) count++;
  return count;
}

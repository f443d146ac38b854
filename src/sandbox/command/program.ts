import { spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { ByteSink } from '../../kube/exec.ts';
import { BufferGarbage } from '../../kube/exec-garbage.ts';

export interface Program {
  /** Looked up in the PATH of `env` when it is no path. */
  readonly name: string;
  readonly args: readonly string[];
  /** All that it gets. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where it runs. Programs leave files there: never in the folder that we were started in. */
  readonly cwd: string;
}

export interface ProgramStreams {
  /** `open`: nothing comes, and no end either before this process ends. Left out: nothing. */
  readonly stdin?: AsyncIterable<Uint8Array> | 'open';
  readonly stdout?: ByteSink;
  readonly stderr?: ByteSink;
  /** Kills the program; it says nothing of what runs in the sandbox. */
  readonly signal?: AbortSignal;
  /** Called when the program has ended, while its source may still be waited for. */
  onEnd?(): void;
}

/** Exit code; undefined when the program was killed. */
export type ProgramExit = number | undefined;

/**
 * Runs a program of this machine once. Streams in constant memory: a slow sink slows the program down. Rejects with
 * Node's error when it cannot be started, with the source's error, or with the sink's.
 */
export async function runProgram(
  { name, args, env, cwd }: Program,
  { stdin, stdout, stderr, signal, onEnd }: ProgramStreams = {},
): Promise<ProgramExit> {
  const child = spawn(name, args, {
    stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    env,
    cwd,
    // A session of its own: Ctrl-C in the terminal is for us, who end the command before its connection.
    detached: true,
  });
  const kill = () => void child.kill('SIGKILL');
  const closed = new Promise<ProgramExit>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      resolve(code ?? undefined);
      onEnd?.();
    });
  });
  signal?.addEventListener('abort', kill, { once: true });
  if (signal?.aborted) kill();
  try {
    const work = [
      drain(child.stdout, stdout),
      drain(child.stderr, stderr),
      ...(stdin === undefined || stdin === 'open' || child.stdin === null ? [] : [feed(child.stdin, stdin)]),
    ];
    const [code] = await Promise.all([closed, ...work]);
    return code;
  } catch (error) {
    kill();
    await closed.catch(() => undefined);
    throw error;
  } finally {
    signal?.removeEventListener('abort', kill);
  }
}

/** The program was never started: there is none, or it may not be run. */
export function isSpawnFailure(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && String(error.syscall).startsWith('spawn');
}

async function drain(stream: Readable | null, sink: ByteSink | undefined): Promise<void> {
  if (stream === null) return;
  for await (const chunk of stream) if (sink !== undefined) await sink.write(chunk);
}

/** Some chunks ahead, so that the program and its source need not wait for each other in turn. */
const QUEUED_BYTES = 512 * 1024;

/** A command that ends before it has read its input closes the pipe: that is its right. */
async function feed(target: Writable, source: AsyncIterable<Uint8Array>): Promise<void> {
  const garbage = new BufferGarbage();
  let open = true;
  // One wait at a time: promises that race against one that stands for the end would all be kept until it comes.
  let wake: () => void = () => undefined;
  target.on('error', () => undefined);
  target.on('drain', () => wake());
  target.once('close', () => {
    open = false;
    wake();
  });
  try {
    for await (const chunk of source) {
      if (!open) return;
      target.write(chunk);
      garbage.add(chunk.length);
      if (!open || target.writableLength < QUEUED_BYTES) continue;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  } finally {
    if (open) target.end();
  }
}

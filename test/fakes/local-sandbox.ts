import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { finished } from 'node:stream/promises';
import {
  type ExecOptions,
  type ExecResult,
  type Sandbox,
  SandboxLostError,
  SCRATCH,
} from '../../src/sandbox/port.ts';

export interface LocalSandbox extends Sandbox {
  /** The folder that stands for SCRATCH. */
  readonly directory: string;
  readonly commands: readonly string[];
  /** From now on every call fails as in a sandbox that was deleted. */
  lose(): void;
}

/**
 * Runs commands as processes of this machine, without any isolation: for tests of what is above the sandbox port
 * only, never for a product. SCRATCH is replaced by a temporary folder wherever it stands in a command or a path.
 */
export async function startLocalSandbox(): Promise<LocalSandbox> {
  const base = await mkdtemp(join(tmpdir(), 'local-sandbox-'));
  const directory = join(base, 'data');
  await mkdir(directory);
  const commands: string[] = [];
  let lost = false;

  const local = (text: string): string => text.replaceAll(SCRATCH, directory);
  const localPath = (path: string): string => {
    checkAlive();
    if (!path.startsWith(`${SCRATCH}/`) || path.includes('..'))
      throw new Error(`path outside ${SCRATCH}: ${path}`);
    return local(path);
  };
  function checkAlive(): void {
    if (lost) throw new SandboxLostError('pod local was deleted');
  }

  async function run(
    command: string,
    stdin: AsyncIterable<Uint8Array> | undefined,
    options: ExecOptions = {},
  ): Promise<ExecResult> {
    checkAlive();
    options.signal?.throwIfAborted();
    commands.push(command);
    const { timeoutMs = 120_000, maxOutputBytes = 1024 * 1024, signal } = options;
    const child = spawn('sh', ['-c', local(command)], { cwd: base, detached: true });
    const stdout = collect(child.stdout, maxOutputBytes);
    const stderr = collect(child.stderr, maxOutputBytes);
    child.stdin.on('error', () => undefined);
    if (stdin) feed(child, stdin);
    else child.stdin.end();
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      killGroup(child);
    }, timeoutMs);
    const onAbort = (): void => killGroup(child);
    signal?.addEventListener('abort', onAbort);
    const [code, killer] = await once(child, 'exit');
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
    // A background process may hold the pipes open for long: what was written until the exit counts.
    await Promise.race([
      Promise.all([stdout.done, stderr.done]),
      new Promise((resolve) => setTimeout(resolve, 200)),
    ]);
    signal?.throwIfAborted();
    checkAlive();
    const output = {
      stdout: stdout.bytes(),
      stderr: stderr.bytes(),
      stdoutBytes: stdout.size(),
      stderrBytes: stderr.size(),
    };
    return timedOut
      ? { kind: 'TimedOut', timeoutMs, ...output }
      : { kind: 'Exited', exitCode: killer ? 128 + 9 : Number(code), ...output };
  }

  async function write(
    path: string,
    chunks: AsyncIterable<Uint8Array>,
  ): Promise<{ bytes: number; lines: number }> {
    const file = localPath(path);
    await mkdir(dirname(file), { recursive: true });
    const target = createWriteStream(file);
    let bytes = 0;
    let lines = 0;
    try {
      for await (const chunk of chunks) {
        checkAlive();
        bytes += chunk.length;
        for (const byte of chunk) if (byte === 0x0a) lines += 1;
        if (!target.write(chunk)) await once(target, 'drain');
      }
    } finally {
      target.end();
      await finished(target);
    }
    return { bytes, lines };
  }

  return {
    ref: { kind: 'Podman', name: 'local' },
    directory,
    commands,
    lose: () => {
      lost = true;
    },
    start: async () => undefined,
    exec: (command, options) => run(command, options?.stdin && single(options.stdin), options),
    writeFile: async (path, bytes) => {
      await write(path, single(bytes));
    },
    streamToFile: (path, chunks) => write(path, chunks),
    streamExec: (command, chunks, options) => run(command, chunks, options),
    async *readFile(path) {
      yield* createReadStream(localPath(path), { highWaterMark: 64 * 1024 });
    },
    cleanup: () => rm(base, { recursive: true, force: true }),
    linger: () => rm(base, { recursive: true, force: true }),
  };
}

async function* single(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function feed(child: ChildProcess, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  let gone = false;
  child.once('exit', () => {
    gone = true;
    child.stdin?.emit('drain');
  });
  for await (const chunk of chunks) {
    if (gone || !child.stdin?.writable) return;
    if (!child.stdin.write(chunk) && !gone) await once(child.stdin, 'drain');
  }
  child.stdin?.end();
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // Already gone.
  }
}

function collect(stream: NodeJS.ReadableStream, maxBytes: number) {
  const chunks: Buffer[] = [];
  let size = 0;
  let kept = 0;
  stream.on('data', (chunk: Buffer) => {
    size += chunk.length;
    const room = maxBytes - kept;
    if (room > 0) {
      chunks.push(chunk.subarray(0, room));
      kept += Math.min(room, chunk.length);
    }
  });
  return { bytes: () => Buffer.concat(chunks), size: () => size, done: once(stream, 'close') };
}

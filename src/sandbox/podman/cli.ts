import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import type { ByteSink } from '../../kube/exec.ts';
import { CappedOutput } from '../command/collect.ts';
import { SandboxUnavailableError } from '../port.ts';

/** The podman program of this machine. */
export interface PodmanCli {
  /** Default `podman`, looked up in PATH. */
  readonly program?: string;
  /** Environment of this process; podman gets only what it needs of it. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface PodmanStreams {
  readonly stdin?: AsyncIterable<Uint8Array>;
  readonly stdout?: ByteSink;
  readonly stderr?: ByteSink;
  /** Kills the program; it says nothing of what runs in the container. */
  readonly signal?: AbortSignal;
}

/** Exit code of podman, or of the command that it ran; undefined when podman itself was killed. */
export type PodmanExit = number | undefined;

/** What podman is told; everything else of the environment may hold credentials and is none of its business. */
const PASSED_ON =
  /^(PATH|HOME|USER|LOGNAME|LANG|LC_\w+|TMPDIR|XDG_\w+|DBUS_SESSION_BUS_ADDRESS|CONTAINERS?_\w+|STORAGE_\w+|REGISTRY_AUTH_FILE|DOCKER_CONFIG|SSL_CERT_\w+|https?_proxy|no_proxy|HTTPS?_PROXY|NO_PROXY)$/;

/** How much of what podman says is kept for a message. */
const COMPLAINT_BYTES = 2048;

/**
 * Runs podman once. Streams in constant memory: a slow sink slows the command down. Rejects when there is no
 * podman, with the source's error, or with the sink's.
 */
export async function runPodman(
  cli: PodmanCli,
  args: readonly string[],
  { stdin, stdout, stderr, signal }: PodmanStreams = {},
): Promise<PodmanExit> {
  const child = spawn(cli.program ?? 'podman', args, {
    stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    env: Object.fromEntries(Object.entries(cli.env).filter(([name]) => PASSED_ON.test(name))),
    // A session of its own: Ctrl-C in the terminal is for us, who end the command before its connection.
    detached: true,
  });
  const kill = () => void child.kill('SIGKILL');
  const closed = new Promise<PodmanExit>((resolve, reject) => {
    child.once('error', (error) => reject(spawnFailure(error)));
    child.once('close', (code) => resolve(code ?? undefined));
  });
  signal?.addEventListener('abort', kill, { once: true });
  if (signal?.aborted) kill();
  try {
    const work = [
      drain(child.stdout, stdout),
      drain(child.stderr, stderr),
      ...(stdin === undefined || child.stdin === null ? [] : [feed(child.stdin, stdin)]),
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

export interface PodmanAnswer {
  readonly exitCode: PodmanExit;
  readonly stdout: string;
  /** What it complained about, without its leading `Error: `. */
  readonly complaint: string;
}

/** Runs podman for an answer that is small. */
export async function askPodman(
  cli: PodmanCli,
  args: readonly string[],
  signal?: AbortSignal,
): Promise<PodmanAnswer> {
  const stdout = new CappedOutput(64 * 1024);
  const stderr = new CappedOutput(COMPLAINT_BYTES);
  const exitCode = await runPodman(cli, args, {
    stdout,
    stderr,
    ...(signal === undefined ? {} : { signal }),
  });
  return { exitCode, stdout: text(stdout).trim(), complaint: complaintOf(stderr) };
}

/** The last line that says something, as podman writes its own errors. */
export function complaintOf(stderr: CappedOutput): string {
  const lines = text(stderr)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const error = lines.findLast((line) => line.startsWith('Error: ')) ?? lines.at(-1) ?? 'no message';
  return error.replace(/^Error: /, '');
}

const text = (output: CappedOutput): string => Buffer.from(output.kept).toString('utf8');

function spawnFailure(error: NodeJS.ErrnoException): Error {
  if (error.code !== 'ENOENT')
    return new SandboxUnavailableError(`podman cannot be started: ${error.message}`, { cause: error });
  return new SandboxUnavailableError(
    'podman is not installed: install it with "apt-get install podman" (Debian, Ubuntu) or "dnf install podman" (Fedora, RHEL), or choose --sandbox none',
  );
}

async function drain(stream: Readable | null, sink: ByteSink | undefined): Promise<void> {
  if (stream === null) return;
  for await (const chunk of stream) if (sink !== undefined) await sink.write(chunk);
}

/** A command that ends before it has read its input closes the pipe: that is its right. */
async function feed(target: Writable, source: AsyncIterable<Uint8Array>): Promise<void> {
  let open = true;
  const closed = new Promise<void>((resolve) =>
    target.once('close', () => {
      open = false;
      resolve();
    }),
  );
  target.on('error', () => undefined);
  try {
    for await (const chunk of source) {
      if (!open) return;
      if (!target.write(chunk)) await Promise.race([closed, drained(target)]);
    }
  } finally {
    if (open) target.end();
  }
}

async function drained(target: Writable): Promise<void> {
  await once(target, 'drain').catch(() => undefined);
}

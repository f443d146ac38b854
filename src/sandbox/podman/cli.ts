import { CappedOutput } from '../command/collect.ts';
import { isSpawnFailure, type ProgramExit, type ProgramStreams, runProgram } from '../command/program.ts';
import { SandboxUnavailableError } from '../port.ts';

/** The podman program of this machine. */
export interface PodmanCli {
  /** Default `podman`, looked up in PATH. */
  readonly program?: string;
  /** Environment of this process; podman gets only what it needs of it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * Where podman runs, asked at every call; default `/`. What watches a container leaves a file there when memory
   * runs out.
   */
  directory?(): string;
}

/** Exit code of podman, or of the command that it ran; undefined when podman itself was killed. */
export type PodmanExit = ProgramExit;

/** What podman is told; everything else of the environment may hold credentials and is none of its business. */
const PASSED_ON =
  /^(PATH|HOME|USER|LOGNAME|LANG|LC_\w+|TMPDIR|XDG_\w+|DBUS_SESSION_BUS_ADDRESS|CONTAINERS?_\w+|STORAGE_\w+|REGISTRY_AUTH_FILE|DOCKER_CONFIG|SSL_CERT_\w+|https?_proxy|no_proxy|HTTPS?_PROXY|NO_PROXY)$/;

/** How much of what podman says is kept for a message. */
const COMPLAINT_BYTES = 2048;

/** As `runProgram`; rejects with `SandboxUnavailableError` when there is no podman. */
export async function runPodman(
  cli: PodmanCli,
  args: readonly string[],
  streams: ProgramStreams = {},
): Promise<PodmanExit> {
  const env = Object.fromEntries(Object.entries(cli.env).filter(([name]) => PASSED_ON.test(name)));
  try {
    const cwd = cli.directory?.() ?? '/';
    return await runProgram({ name: cli.program ?? 'podman', args, env, cwd }, streams);
  } catch (error) {
    throw isSpawnFailure(error) ? spawnFailure(error) : error;
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

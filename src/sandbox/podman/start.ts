import type { Logger } from '../../kube/log.ts';
import { SandboxUnavailableError, SCRATCH } from '../port.ts';
import { askPodman, type PodmanCli } from './cli.ts';

export interface ContainerWish {
  readonly name: string;
  readonly image: string;
  /** The container ends by itself then, should nobody be left to remove it. */
  readonly maxLifetimeSeconds: number;
  readonly limits?: ContainerLimits;
}

/** What a container may use up; sizes as podman takes them: `2g`. */
export interface ContainerLimits {
  /** Holds /tmp too. */
  readonly memory: string;
  readonly processes: number;
  readonly tmp: string;
}

const LIMITS: ContainerLimits = { memory: '2g', processes: 1024, tmp: '1g' };

/** Options of podman that make a container start on one kind of machine. */
export interface PodmanDialect {
  /** Why they are needed, for a log line; empty for the plain one. */
  readonly why: string;
  /** Before the subcommand. */
  readonly global: readonly string[];
  readonly run: readonly string[];
  /** Whether the limits can be set; else the container has those of the machine. */
  readonly limited: boolean;
}

const LOWER_ULIMITS = ['--ulimit=nofile=1024:1024', '--ulimit=nproc=4096:4096'];
const OTHER_RUNTIME = ['--cgroup-manager=cgroupfs', '--runtime=runc'];

/** Tried in this order; the first that starts is used. Isolation is the same in all of them. */
const DIALECTS: readonly PodmanDialect[] = [
  { why: '', global: [], run: [], limited: true },
  {
    why: 'this machine does not let podman raise resource limits',
    global: [],
    run: LOWER_ULIMITS,
    limited: true,
  },
  {
    why: "podman's own runtime or cgroup manager does not work here: runc and cgroupfs are used",
    global: OTHER_RUNTIME,
    run: LOWER_ULIMITS,
    limited: true,
  },
  {
    why: 'this machine gives containers no limits on memory, CPUs and processes',
    global: [],
    run: LOWER_ULIMITS,
    limited: false,
  },
  {
    why: 'runc and cgroupfs are used, without limits on memory, CPUs and processes',
    global: OTHER_RUNTIME,
    run: LOWER_ULIMITS,
    limited: false,
  },
];

/**
 * The first process ends on SIGTERM and collects the processes that a killed command leaves to it, which
 * `sleep infinity` alone would leave as zombies until no process can be made any more.
 */
const FIRST_PROCESS = ['sh', '-c', "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"];

/**
 * Starts the container, with the image pulled when it is not here, and makes the scratch directory. Resolves with
 * the dialect that worked. Rejects with `SandboxUnavailableError`, which has podman's words, or the signal's reason.
 */
export async function startContainer(
  cli: PodmanCli,
  wish: ContainerWish,
  { logger, signal }: { readonly logger: Logger; readonly signal: AbortSignal | undefined },
): Promise<PodmanDialect> {
  await ensureImage(cli, wish.image, logger, signal);
  const complaints: string[] = [];
  for (const dialect of DIALECTS) {
    signal?.throwIfAborted();
    const started = await askPodman(cli, runArgs(wish, dialect), signal);
    if (started.exitCode === 0) {
      if (dialect.why !== '') logger.info({ container: wish.name }, `podman: ${dialect.why}`);
      await makeScratch(cli, wish, dialect, signal);
      return dialect;
    }
    // A container that could not start may have been created under the name.
    await removeContainer(cli, wish.name, dialect.global);
    signal?.throwIfAborted();
    logger.debug({ container: wish.name, error: started.complaint }, 'podman run failed, trying other flags');
    complaints.push(started.complaint);
  }
  throw new SandboxUnavailableError(
    `podman cannot start a container of ${wish.image}: ${complaints[0] ?? 'no message'} (with other flags: ${complaints.at(-1) ?? 'no message'}); try "podman run --rm ${wish.image} true"`,
  );
}

/** Idempotent. Resolves with podman's complaint when it is still there afterwards. */
export async function removeContainer(
  cli: PodmanCli,
  name: string,
  global: readonly string[],
): Promise<string | undefined> {
  const removed = await askPodman(cli, [...global, 'rm', '--force', '--ignore', '--time=0', name]);
  if (removed.exitCode === 0) return undefined;
  const exists = await askPodman(cli, [...global, 'container', 'exists', name]);
  return exists.exitCode === 1 ? undefined : removed.complaint;
}

/** No mount of the host, no network, no capability, no credential: data comes in through stdin only. */
function runArgs(
  { name, image, maxLifetimeSeconds, limits = LIMITS }: ContainerWish,
  dialect: PodmanDialect,
): string[] {
  const { memory, processes, tmp } = limits;
  return [
    ...dialect.global,
    ...['run', '--detach', '--rm', `--name=${name}`, '--pull=never', `--timeout=${maxLifetimeSeconds}`],
    ...['--network=none', '--user=65532', '--workdir=/tmp', '--http-proxy=false'],
    ...['--cap-drop=all', '--security-opt=no-new-privileges'],
    ...['--read-only', `--tmpfs=/tmp:rw,nosuid,nodev,exec,size=${tmp},mode=1777`],
    ...['--label=app.kubernetes.io/managed-by=hummingbird', '--entrypoint='],
    ...(dialect.limited ? [`--memory=${memory}`, '--cpus=2', `--pids-limit=${processes}`] : []),
    ...dialect.run,
    image,
    ...FIRST_PROCESS,
  ];
}

async function ensureImage(
  cli: PodmanCli,
  image: string,
  logger: Logger,
  signal: AbortSignal | undefined,
): Promise<void> {
  const known = await askPodman(cli, ['image', 'exists', image], signal);
  signal?.throwIfAborted();
  if (known.exitCode === 0) return;
  logger.info({ image }, 'pulling the sandbox image');
  const pulled = await askPodman(cli, ['pull', '--quiet', image], signal);
  signal?.throwIfAborted();
  if (pulled.exitCode === 0) return;
  throw new SandboxUnavailableError(
    `the sandbox image ${image} is not here and cannot be pulled: ${pulled.complaint}; load it with "podman load" or name another in settings.sandbox.image`,
  );
}

async function makeScratch(
  cli: PodmanCli,
  { name }: ContainerWish,
  { global }: PodmanDialect,
  signal: AbortSignal | undefined,
): Promise<void> {
  const made = await askPodman(cli, [...global, 'exec', name, 'mkdir', '-p', SCRATCH], signal);
  signal?.throwIfAborted();
  if (made.exitCode === 0) return;
  await removeContainer(cli, name, global);
  throw new SandboxUnavailableError(`container ${name}: mkdir -p ${SCRATCH}: ${made.complaint}`);
}

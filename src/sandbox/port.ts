/** Work directory inside every sandbox, made by `start()`. */
export const SCRATCH = '/tmp/data';
/** Where spilled output goes; below SCRATCH so that the session's archive carries it. */
export const SPILL_DIR = '/tmp/data/_out';

/** A shell command that succeeds only where there is room for processes: it starts as many as a small script needs. */
export const ROOM_FOR_PROCESSES = ': | : | : | : | : | : | : | :';

export interface SandboxRef {
  readonly kind: 'Pod' | 'PodPool' | 'Podman' | 'VirtualMachineInstance' | 'VirtualMachineInstancePool';
  readonly name: string;
  readonly namespace?: string;
}

export interface ExecOptions {
  /** Small by promise: for anything unbounded use `streamExec`. */
  readonly stdin?: Uint8Array;
  /** Default 120 s (EXEC_TIMEOUT). The command's whole process group is killed at the deadline. */
  readonly timeoutMs?: number;
  /** Cap per stream on what is kept in memory, default 1 MiB; what exceeds it is counted and dropped. */
  readonly maxOutputBytes?: number;
  readonly signal?: AbortSignal;
}

export interface ExecOutput {
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  /** Bytes the command wrote, also those dropped over `maxOutputBytes`. */
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
}

export type ExecResult =
  | (ExecOutput & { readonly kind: 'Exited'; readonly exitCode: number })
  | (ExecOutput & { readonly kind: 'TimedOut'; readonly timeoutMs: number });

/** The sandbox is gone (deleted, evicted, out of memory, node lost): nothing more can be run in it. */
export class SandboxLostError extends Error {
  readonly reason = 'SandboxLost';
  override readonly name = 'SandboxLostError';
}

/** No sandbox could be had: an image that cannot be pulled, an empty pool past its timeout, no such pool. */
export class SandboxUnavailableError extends Error {
  readonly reason = 'SandboxUnavailable';
  override readonly name = 'SandboxUnavailableError';
}

/**
 * One isolated place to run commands. Every method settles, whatever happens to the sandbox; an abort rejects
 * with the signal's reason after the command's process group was killed. Paths outside SCRATCH are refused.
 */
export interface Sandbox {
  readonly ref: SandboxRef;
  /** Ready for commands afterwards, SCRATCH exists. */
  start(signal?: AbortSignal): Promise<void>;
  /** Runs `sh -c command`. */
  exec(command: string, options?: ExecOptions): Promise<ExecResult>;
  writeFile(path: string, bytes: Uint8Array, options?: { readonly signal?: AbortSignal }): Promise<void>;
  /** Constant memory. `lines` counts newline bytes. */
  streamToFile(
    path: string,
    chunks: AsyncIterable<Uint8Array>,
    options?: { readonly signal?: AbortSignal },
  ): Promise<{ readonly bytes: number; readonly lines: number }>;
  streamExec(
    command: string,
    chunks: AsyncIterable<Uint8Array>,
    options?: Omit<ExecOptions, 'stdin'>,
  ): Promise<ExecResult>;
  /** Chunks of at most 64 KiB, constant memory. Rejects when the file is missing. */
  readFile(path: string, options?: { readonly signal?: AbortSignal }): AsyncIterable<Uint8Array>;
  /** Deletes it; idempotent; failures are logged and left to the reaper. */
  cleanup(): Promise<void>;
  /** Keeps it for the session's next run where the backend can, else cleans up. */
  linger(sessionId: string): Promise<void>;
}

export interface SandboxRequest {
  readonly runUid: string;
  readonly runName: string;
  readonly runNamespace: string;
  readonly workflow: string;
  readonly sessionId?: string;
  /**
   * For a run that goes on with the session: uid of the run that saved it last. A sandbox that lingers with just
   * this save is taken before any other.
   */
  readonly savedBy?: string;
  /** Since when the run waits, where an earlier process has seen it wait. Left out: since it first asked this one. */
  readonly waitingSince?: Date;
  readonly pool: { readonly namespace: string; readonly name: string };
  readonly epoch: number;
  readonly labels: Readonly<Record<string, string>>;
  /** Absolute time after which the sandbox may be reaped. */
  readonly reapBy: Date;
}

export type ClaimResult =
  /** `reclaimed`: it lingered for the run's session, so the session's work directory is in it. */
  | { readonly kind: 'Claimed'; readonly sandbox: Sandbox; readonly reclaimed?: true }
  /** Nothing free now; ask again later. `message` says why, for the run's condition. */
  | { readonly kind: 'Waiting'; readonly message: string }
  /** Will not get better by waiting (no such pool, image cannot be pulled): the run ends SandboxUnavailable. */
  | { readonly kind: 'Unavailable'; readonly message: string };

export interface LingerRequest {
  readonly runUid: string;
  /** Of the session's object; a session of that name in another namespace is another one. */
  readonly runNamespace: string;
  readonly sessionId: string;
  /** Where the run's sandbox is. */
  readonly namespace: string;
}

export type LingerResult =
  | { readonly kind: 'Lingers'; readonly ref: SandboxRef; readonly until: Date }
  /** Its pool keeps none, or there is none (any more). What the run still owns is to be released. */
  | { readonly kind: 'NotKept'; readonly message: string };

/** Where runs get sandboxes. All methods are safe to repeat: a run owns one sandbox at the most. */
export interface SandboxProvider {
  /** The run's sandbox: the one that it owns already (by its uid's label), else a newly claimed one. */
  claim(request: SandboxRequest, signal?: AbortSignal): Promise<ClaimResult>;
  /** The usable sandbox that carries this run's uid in the namespace, as it is: claims nothing, changes nothing. */
  find(runUid: string, namespace: string): Promise<Sandbox | undefined>;
  /**
   * Lets the session's next run have the run's sandbox, for the time that its pool says; the run does not own it any
   * more. Call it when the session is saved: what lingers is that save.
   */
  linger(request: LingerRequest): Promise<LingerResult>;
  /** Deletes every sandbox that carries this run's uid in the namespace; true when none was left. */
  release(runUid: string, namespace: string): Promise<boolean>;
}

/** What a probe of a sandbox's isolation tries; `Target` is an address that the pool names itself. */
export const PROBE_SUBJECTS = [
  'ApiServer',
  'Kubelet',
  'Dns',
  'Metadata',
  'Pod',
  'IPv6',
  'Target',
  'ServiceAccountToken',
  'Volume',
  'Environment',
] as const;
export type ProbeSubject = (typeof PROBE_SUBJECTS)[number];

/** An address that the inside of a sandbox must not reach. */
export interface ProbeTarget {
  readonly name: ProbeSubject;
  /** IPv4 or IPv6, no host name: nothing resolves it. */
  readonly address: string;
  readonly port: number;
  /** Asked as a name server, over UDP; else a TCP connection is tried. */
  readonly udp: boolean;
}

export interface ProbeFinding {
  readonly subject: ProbeSubject;
  /** `10.0.0.1:443/tcp`, or what was looked at. */
  readonly where: string;
  /** It was reached, or a credential lies there. */
  readonly open: boolean;
  /** In words; never a value that was found. */
  readonly detail: string;
}

/** Everything was tried once. */
export type ProbeRound = readonly ProbeFinding[];

export interface ProbePlan {
  readonly targets: readonly ProbeTarget[];
  readonly rounds: number;
  /** Pause between two rounds. */
  readonly gapMs: number;
}

/** `CannotProbe`: the sandbox does not have what the probe runs on, or answers something else. Nothing is proven. */
export type ProbeResult =
  | { readonly kind: 'Probed'; readonly rounds: readonly ProbeRound[] }
  | { readonly kind: 'CannotProbe'; readonly why: string };

import type { ByteSink } from '../../kube/exec.ts';

export interface CommandStreams {
  readonly stdin?: AsyncIterable<Uint8Array>;
  readonly stdout?: ByteSink;
  readonly stderr?: ByteSink;
  /** Left out: as long as it takes and the connection lives. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export type CommandEnd =
  | { readonly kind: 'Exited'; readonly exitCode: number }
  | { readonly kind: 'TimedOut' };

/** How one backend runs words in its sandbox. */
export interface Commands {
  /** For messages: `pod sandboxes/box`, `container hb-sandbox-0011aabb`. */
  readonly where: string;
  /**
   * Runs `command`, whose processes carry `id`. At the deadline, at an abort and when the connection is lost they
   * are killed. Rejects with `SandboxLostError`, the signal's reason, the source's own error, or the backend's.
   */
  run(id: string, command: readonly string[], streams: CommandStreams): Promise<CommandEnd>;
  /** A short command without a mark, for our own housekeeping; resolves with its exit code. */
  runPlain(
    command: readonly string[],
    options: { readonly timeoutMs: number; readonly signal?: AbortSignal; readonly stdout?: ByteSink },
  ): Promise<number>;
}

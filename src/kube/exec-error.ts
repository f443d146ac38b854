/**
 * Why an exec has no exit code.
 * - `NotFound`: no such pod, namespace or container. `NotRunning`: the container has ended or not begun.
 * - `Forbidden`: the API server does not let this identity exec here (401, 403).
 * - `NotStarted`: the container runtime refused the command (no such executable, no process left).
 * - `Refused`: any other answer of the API server before the command began.
 * - `Broken`: the API server, the node or the runtime reported a failure of its own after the connection stood.
 * - `Unreachable`: no connection came about. `Disconnected`: it ended before the exit status came.
 * - `Unresponsive`: the connection stands and nobody answers. `Protocol`: the answer makes no sense.
 * - `StdinFailed`, `SinkFailed`: the caller's source or sink threw; see `cause`.
 */
export type ExecFailure =
  | 'NotFound'
  | 'NotRunning'
  | 'Forbidden'
  | 'NotStarted'
  | 'Refused'
  | 'Broken'
  | 'Unreachable'
  | 'Disconnected'
  | 'Unresponsive'
  | 'Protocol'
  | 'StdinFailed'
  | 'SinkFailed';

const NEVER_STARTED: ReadonlySet<ExecFailure> = new Set([
  'NotFound',
  'NotRunning',
  'Forbidden',
  'NotStarted',
  'Refused',
  'Unreachable',
]);

/** An exec that ended without an exit code; an abort is not one of these, it rejects with the signal's reason. */
export class ExecError extends Error {
  override readonly name = 'ExecError';
  readonly reason: ExecFailure;
  /** HTTP status of a refused upgrade. */
  readonly status: number | undefined;

  constructor(
    reason: ExecFailure,
    message: string,
    more: { readonly status?: number; readonly cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.reason = reason;
    this.status = more.status;
  }

  /** The command may have run, or may still be running: repeating it is the caller's decision. */
  get maybeStarted(): boolean {
    return !NEVER_STARTED.has(this.reason);
  }

  /** The same call may succeed a moment later and surely did nothing yet. */
  get retryable(): boolean {
    return this.reason === 'Unreachable' || (this.reason === 'Refused' && (this.status ?? 0) >= 429);
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

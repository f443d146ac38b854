import { type Clock, sleep } from '../../kube/clock.ts';
import { ExecError } from '../../kube/exec-error.ts';
import { SandboxLostError, SandboxUnavailableError, SCRATCH } from '../port.ts';
import type { PodCommands } from './commands.ts';

export interface PodStartOptions {
  readonly clock: Clock;
  /** POD_START_TIMEOUT. */
  readonly startTimeoutMs: number;
  /** Told what is waited for, whenever that changes. */
  onWaiting?(why: string): void;
}

const POLL_MS = 500;
const MKDIR_MS = 30_000;
/** An image that could not be pulled for this long is not waited for any longer. */
const FAILING_MS = 30_000;

/**
 * Makes the scratch directory, which shows that commands run: the first try is made at once, since a pod of a
 * pool runs already. Rejects with `SandboxUnavailableError`, `SandboxLostError`, or the signal's reason.
 */
export async function startPod(
  commands: PodCommands,
  options: PodStartOptions,
  signal?: AbortSignal,
): Promise<void> {
  const { clock, startTimeoutMs } = options;
  const begun = clock.monotonicMs();
  let failingSince: number | undefined;
  let why = 'not started yet';
  while (clock.monotonicMs() - begun < startTimeoutMs) {
    const refused = await makeScratch(commands, signal);
    if (refused === undefined) return;
    const now = await commands.outlook(signal);
    if (now.kind === 'Gone') throw new SandboxLostError(`sandbox ${commands.where} is gone: ${now.why}`);
    if (now.kind === 'Unusable') throw unavailable(commands, now.why);
    const failing = now.kind === 'Starting' && now.failing;
    if (!failing) failingSince = undefined;
    else failingSince ??= clock.monotonicMs();
    const before = why;
    why = now.kind === 'Starting' ? now.why : refused.message;
    if (why !== before) options.onWaiting?.(why);
    if (failingSince !== undefined && clock.monotonicMs() - failingSince >= FAILING_MS)
      throw unavailable(commands, why);
    await sleep(clock, POLL_MS, signal);
    signal?.throwIfAborted();
  }
  throw unavailable(commands, `not usable after ${Math.round(startTimeoutMs / 1000)} s: ${why}`);
}

function unavailable(commands: PodCommands, why: string): SandboxUnavailableError {
  return new SandboxUnavailableError(`sandbox ${commands.where} cannot be used: ${why}`);
}

/** Undefined when it is there; the error when another try makes sense. */
async function makeScratch(
  commands: PodCommands,
  signal: AbortSignal | undefined,
): Promise<ExecError | undefined> {
  try {
    const command = ['mkdir', '-p', SCRATCH];
    const exitCode = await commands.runPlain(command, {
      timeoutMs: MKDIR_MS,
      ...(signal === undefined ? {} : { signal }),
    });
    if (exitCode === 0) return undefined;
    throw unavailable(commands, `mkdir -p ${SCRATCH} ended with exit code ${exitCode}`);
  } catch (error) {
    if (!(error instanceof ExecError)) throw error;
    if (error.reason === 'Forbidden') throw unavailable(commands, error.message);
    return error;
  }
}

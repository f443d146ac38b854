import { type Clock, sleep } from '../../kube/clock.ts';
import { SandboxLostError, SandboxUnavailableError, SCRATCH } from '../port.ts';
import type { MachineCommands } from './commands.ts';
import { type MachineConnection, UnreachableError } from './connection.ts';

export interface MachineStartOptions {
  readonly clock: Clock;
  /** Until it runs and has an address. */
  readonly machineTimeoutMs: number;
  /** From then on until a command succeeds over SSH (SSH_READY_TIMEOUT). */
  readonly sshTimeoutMs: number;
}

const POLL_MS = 1_000;
const SSH_RETRY_MS = 500;
const MKDIR_MS = 30_000;
/** An image that could not be pulled for this long is not waited for any longer. */
const FAILING_MS = 60_000;

/**
 * Waits for the machine's address, then for a command that succeeds there, which is what makes the scratch
 * directory; nobody is asked before there is an address. Rejects with `SandboxUnavailableError`, `SandboxLostError`,
 * or the signal's reason.
 */
export async function startMachine(
  connection: MachineConnection,
  commands: MachineCommands,
  options: MachineStartOptions,
  signal?: AbortSignal,
): Promise<void> {
  signal?.throwIfAborted();
  await addressed(connection, options, signal);
  const { clock, sshTimeoutMs } = options;
  const begun = clock.monotonicMs();
  let why = 'nobody has answered yet';
  while (clock.monotonicMs() - begun < sshTimeoutMs) {
    try {
      await connection.connect();
      const command = ['mkdir', '-p', SCRATCH];
      const exitCode = await commands.runPlain(command, {
        timeoutMs: MKDIR_MS,
        ...(signal === undefined ? {} : { signal }),
      });
      if (exitCode === 0) return;
      throw unavailable(connection, `mkdir -p ${SCRATCH} ended with exit code ${exitCode}`);
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof UnreachableError)) throw error;
      why = error.message;
    }
    await sleep(clock, SSH_RETRY_MS, signal);
    signal?.throwIfAborted();
  }
  throw unavailable(connection, `no command succeeded within ${sshTimeoutMs / 1000} s: ${why}`);
}

async function addressed(
  connection: MachineConnection,
  { clock, machineTimeoutMs }: MachineStartOptions,
  signal: AbortSignal | undefined,
): Promise<void> {
  const begun = clock.monotonicMs();
  let failingSince: number | undefined;
  let why = '';
  while (clock.monotonicMs() - begun < machineTimeoutMs) {
    const now = await connection.outlook(signal);
    if (now.kind === 'Reachable') return;
    if (now.kind === 'Gone') throw new SandboxLostError(`sandbox ${connection.where} is gone: ${now.why}`);
    why = now.why;
    if (!now.failing) failingSince = undefined;
    else failingSince ??= clock.monotonicMs();
    if (failingSince !== undefined && clock.monotonicMs() - failingSince >= FAILING_MS)
      throw unavailable(connection, why);
    await sleep(clock, POLL_MS, signal);
    signal?.throwIfAborted();
  }
  throw unavailable(connection, `no address after ${machineTimeoutMs / 1000} s: ${why}`);
}

const unavailable = ({ where }: MachineConnection, why: string): SandboxUnavailableError =>
  new SandboxUnavailableError(`sandbox ${where} cannot be used: ${why}`);

import { randomUUID } from 'node:crypto';
import { type Clock, systemClock } from '../../kube/clock.ts';
import { errorFields, type Logger } from '../../kube/log.ts';
import { commandSandbox } from '../command/sandbox.ts';
import type { Sandbox, SandboxRef } from '../port.ts';
import { MachineCommands } from './commands.ts';
import type { MachineConnection } from './connection.ts';
import { startMachine } from './start.ts';

export interface MachineSandboxOptions {
  readonly ref: SandboxRef;
  /** May be shared with others; `cleanup` closes it. */
  readonly connection: MachineConnection;
  /** Idempotent. */
  deleteMachine(): Promise<void>;
  /** Left out: it is deleted instead. */
  lingerMachine?(sessionId: string): Promise<void>;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** Ids that are used once. */
  readonly newId?: () => string;
  /** Until it runs and has an address, default 300 s. */
  readonly machineTimeoutMs?: number;
  /** From then on until a command succeeds over SSH, default 120 s (SSH_READY_TIMEOUT). */
  readonly sshTimeoutMs?: number;
}

/** A sandbox that is one virtual machine: whoever made or claimed it hands it over. Commands go through ssh. */
export function machineSandbox(options: MachineSandboxOptions): Sandbox {
  const { ref, connection, clock = systemClock, newId = randomUUID } = options;
  const { machineTimeoutMs = 300_000, sshTimeoutMs = 120_000 } = options;
  const commands = new MachineCommands({ connection, clock, newId });
  return commandSandbox({
    ref,
    commands,
    newId,
    start: (signal) => startMachine(connection, commands, { clock, machineTimeoutMs, sshTimeoutMs }, signal),
    cleanup: () => settled(options, () => options.deleteMachine()),
    linger: (sessionId) =>
      settled(options, () => options.lingerMachine?.(sessionId) ?? options.deleteMachine()),
  });
}

/** Nobody needs the connection any more. What fails then is left to the reaper. */
async function settled(
  { connection, logger }: MachineSandboxOptions,
  work: () => Promise<void>,
): Promise<void> {
  await connection.close();
  try {
    await work();
  } catch (error) {
    logger.warn(
      { machine: connection.where, ...errorFields(error) },
      'sandbox machine not deleted; the reaper will try again',
    );
  }
}

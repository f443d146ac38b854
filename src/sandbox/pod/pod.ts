import { randomUUID } from 'node:crypto';
import { type Clock, systemClock } from '../../kube/clock.ts';
import type { ExecConnection } from '../../kube/exec-connection.ts';
import { errorFields, type Logger } from '../../kube/log.ts';
import type { KubeClient } from '../../kube/port.ts';
import { commandSandbox } from '../command/sandbox.ts';
import { endUnfinished } from '../command/unfinished.ts';
import type { Sandbox, SandboxRef } from '../port.ts';
import { PodCommands } from './commands.ts';
import { startPod } from './start.ts';

export interface PodSandboxOptions {
  readonly connection: ExecConnection;
  /** Reads the pod, to tell a lost one from a lost connection. */
  readonly client: Pick<KubeClient, 'get'>;
  readonly ref: SandboxRef;
  readonly namespace: string;
  readonly pod: string;
  /** Where known: another pod of the same name is then not taken for it. */
  readonly uid?: string;
  /** Default `sandbox`. */
  readonly container?: string;
  /** Another process had it before and may have left a command running: `start` ends that. Default: nobody had. */
  readonly inherited?: boolean;
  /** Idempotent. */
  deletePod(): Promise<void>;
  /** Keeps it for the session's next run, else deletes it. Left out: deletes it. */
  lingerPod?(sessionId: string): Promise<void>;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** Ids that are used once. */
  readonly newId?: () => string;
  /** Default 300 s (POD_START_TIMEOUT). */
  readonly startTimeoutMs?: number;
}

/** A sandbox that is one container of a pod: whoever made or claimed the pod hands it over. */
export function podSandbox(options: PodSandboxOptions): Sandbox {
  const { ref, clock = systemClock, newId = randomUUID, startTimeoutMs = 300_000 } = options;
  const commands = new PodCommands({
    ...options,
    container: options.container ?? 'sandbox',
    clock,
    newId,
  });
  return commandSandbox({
    ref,
    commands,
    newId,
    async start(signal) {
      const onWaiting = (why: string) => options.logger.info({}, `waiting for ${commands.where}: ${why}`);
      await startPod(commands, { clock, startTimeoutMs, onWaiting }, signal);
      if (options.inherited) await endUnfinished(commands, clock, signal);
    },
    cleanup: () => settled(options, () => options.deletePod()),
    linger: (sessionId) => settled(options, () => options.lingerPod?.(sessionId) ?? options.deletePod()),
  });
}

/** What fails here is left to the reaper. */
async function settled(
  { logger, namespace, pod }: PodSandboxOptions,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    logger.warn(
      { namespace, pod, ...errorFields(error) },
      'sandbox pod not deleted; the reaper will try again',
    );
  }
}

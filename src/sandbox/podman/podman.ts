import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, systemClock } from '../../kube/clock.ts';
import { errorFields, type Logger } from '../../kube/log.ts';
import { commandSandbox } from '../command/sandbox.ts';
import type { Sandbox } from '../port.ts';
import type { PodmanCli } from './cli.ts';
import { PodmanCommands } from './commands.ts';
import { type ContainerLimits, type PodmanDialect, removeContainer, startContainer } from './start.ts';

export interface PodmanSandboxOptions extends PodmanCli {
  readonly image: string;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** Where the sandbox has a folder of its own; default the machine's for temporary files. */
  readonly tempDir?: string;
  /** Ids that are used once. */
  readonly newId?: () => string;
  /** Eight hex digits that no other container's name has. */
  readonly newSuffix?: () => string;
  /** Default 1800 s: what is left behind by a process that was killed ends by itself then. */
  readonly maxLifetimeSeconds?: number;
  /** Default: 2 GiB of memory, of which /tmp may take 1 GiB, and 1024 processes. */
  readonly limits?: ContainerLimits;
}

/**
 * A sandbox that is one container of this machine: no network, no mounts, no capabilities, a read-only root with
 * a temporary /tmp. `start()` makes it (a second call finds it), `cleanup()` removes it.
 */
export function podmanSandbox(options: PodmanSandboxOptions): Sandbox {
  const { image, logger, clock = systemClock, newId = randomUUID, maxLifetimeSeconds = 1800 } = options;
  const name = `hb-sandbox-${(options.newSuffix ?? (() => randomBytes(4).toString('hex')))()}`;
  const { limits } = options;
  const wish = { name, image, maxLifetimeSeconds, ...(limits === undefined ? {} : { limits }) };
  let dialect: PodmanDialect | undefined;
  let mayExist = false;
  let folder: string | undefined;
  const cli: PodmanCli = { ...options, directory: () => folder ?? '/' };
  const globalArgs = () => dialect?.global ?? [];
  return commandSandbox({
    ref: { kind: 'Podman', name },
    commands: new PodmanCommands({ cli, globalArgs, container: name, clock, newId }),
    newId,
    async start(signal) {
      if (dialect !== undefined) return;
      mayExist = true;
      try {
        folder ??= await mkdtemp(join(options.tempDir ?? tmpdir(), `${name}-`));
        dialect = await startContainer(cli, wish, { logger, signal });
      } catch (error) {
        // The abort may have come after the container; any other failure leaves none.
        if (signal?.aborted) await remove();
        else await removeFolder();
        mayExist = false;
        throw error;
      }
    },
    cleanup: remove,
  });

  async function remove(): Promise<void> {
    if (!mayExist) return;
    try {
      const complaint = await removeContainer(cli, name, globalArgs());
      if (complaint === undefined) mayExist = false;
      else warn({ error: complaint });
    } catch (error) {
      warn(errorFields(error));
    }
    await removeFolder();
  }

  async function removeFolder(): Promise<void> {
    const path = folder;
    folder = undefined;
    if (path !== undefined) await rm(path, { recursive: true, force: true }).catch(() => undefined);
  }

  function warn(fields: object): void {
    logger.warn(
      { container: name, ...fields },
      `sandbox container not removed: run "podman rm --force ${name}"; it ends by itself after ${maxLifetimeSeconds} s`,
    );
  }
}

import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

const PREFIX = 'hb-vm-';

/** A folder for one connection, which says whose it is. */
export const connectionFolder = (tempDir: string, pid: number): Promise<string> =>
  mkdtemp(join(tempDir, `${PREFIX}${pid}-`));

/**
 * Removes the folders of processes that were killed: one that was just logging in has left a private key there. Of
 * folders with our own pid only those from before our start are theirs, in a container that was started again.
 * Never rejects.
 */
export async function removeLeftovers(
  tempDir: string,
  {
    pid,
    startedAt,
    isAlive,
  }: {
    readonly pid: number;
    readonly startedAt: Date;
    readonly isAlive: (pid: number) => boolean;
  },
): Promise<void> {
  const names = await readdir(tempDir).catch(() => []);
  for (const name of names) {
    const owner = Number(new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1] ?? Number.NaN);
    if (Number.isNaN(owner)) continue;
    const path = join(tempDir, name);
    const made = await stat(path).then(
      ({ birthtime }) => birthtime,
      () => undefined,
    );
    const left = owner === pid ? made !== undefined && made < startedAt : !isAlive(owner);
    if (left) await rm(path, { recursive: true, force: true }).catch(() => undefined);
  }
}

/** Whether there is such a process, of any user. */
export function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

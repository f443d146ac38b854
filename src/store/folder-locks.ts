import { createHash } from 'node:crypto';
import { mkdir, open, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { StoreError } from './port.ts';

/** A lock file older than this belongs to a process that died with it: what is done under a lock takes milliseconds. */
const STALE_MS = 30_000;
const POLL_MS = 20;

export interface KeyLocks {
  /** Runs the work while no other process, and nothing else here, works on the same key. */
  hold<T>(key: string, work: () => Promise<T>): Promise<T>;
}

/** Locks by exclusively created files, since a folder has no compare-and-swap of its own. */
export function keyLocks(folder: string): KeyLocks {
  const queues = new Map<string, Promise<unknown>>();
  return {
    async hold(key, work) {
      const before = queues.get(key) ?? Promise.resolve();
      const mine = before.catch(() => undefined).then(() => underFileLock(folder, key, work));
      queues.set(key, mine);
      try {
        return await mine;
      } finally {
        if (queues.get(key) === mine) queues.delete(key);
      }
    },
  };
}

async function underFileLock<T>(folder: string, key: string, work: () => Promise<T>): Promise<T> {
  const path = join(folder, createHash('sha256').update(key).digest('hex'));
  await acquire(folder, path, key);
  try {
    return await work();
  } finally {
    await unlink(path).catch(() => undefined);
  }
}

async function acquire(folder: string, path: string, key: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const attempts = (2 * STALE_MS) / POLL_MS;
  for (let attempt = 0; attempt < attempts; attempt++) {
    try {
      const file = await open(path, 'wx');
      await file.close();
      return;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    }
    const since = await stat(path).then(
      ({ mtimeMs }) => Date.now() - mtimeMs,
      () => 0,
    );
    if (since > STALE_MS) await unlink(path).catch(() => undefined);
    else await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new StoreError(`The object ${key} is locked by ${path}: remove that file if no other process runs.`, {
    retryable: true,
  });
}

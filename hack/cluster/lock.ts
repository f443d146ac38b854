import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from './paths.ts';
import { isAlive, startOf } from './processes.ts';

/**
 * Runs `work` while holding the lock file, so that two processes never build the same thing at once.
 * A lock whose owner is gone is taken over; waiting is announced once and then every half minute.
 */
export async function withLock<T>(path: string, what: string, log: Log, work: () => Promise<T>): Promise<T> {
  mkdirSync(dirname(path), { recursive: true });
  // The first attempt may only have cleared a dead owner's lock away.
  for (let waited = 0; !tryLock(path) && !tryLock(path); waited += 250) {
    if (waited % 30_000 === 0)
      log(`another process is busy with ${what}; waiting for it (${waited / 1000} s)`);
    await sleep(250);
  }
  try {
    return await work();
  } finally {
    rmSync(path, { force: true });
  }
}

function tryLock(path: string): boolean {
  const mine = `${path}.${process.pid}`;
  writeFileSync(mine, JSON.stringify({ pid: process.pid, startedAt: startOf(process.pid) ?? '' }));
  try {
    // link(2) fails when the name exists, and the file is complete the moment it appears.
    linkSync(mine, path);
    return true;
  } catch {
    if (!ownerAlive(path)) takeAway(path);
    return false;
  } finally {
    rmSync(mine, { force: true });
  }
}

/** Moves a dead owner's lock aside; if another process replaced it in between, its lock is put back. */
function takeAway(path: string): void {
  const aside = `${path}.stale.${process.pid}`;
  try {
    renameSync(path, aside);
    if (ownerAlive(aside)) linkSync(aside, path);
  } catch {
    // Somebody else was quicker; the next attempt sees what is there now.
  } finally {
    rmSync(aside, { force: true });
  }
}

function ownerAlive(path: string): boolean {
  try {
    const owner: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof owner !== 'object' || owner === null || !('pid' in owner) || !('startedAt' in owner))
      return false;
    return isAlive({ pid: Number(owner.pid), startedAt: String(owner.startedAt) });
  } catch {
    return false;
  }
}

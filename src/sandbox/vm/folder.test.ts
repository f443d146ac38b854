import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { connectionFolder, isProcessAlive, removeLeftovers } from './folder.ts';

let tempDir: string;
beforeEach(async () => {
  tempDir = await mkdtemp(join(tmpdir(), 'vm-folders-'));
});
afterEach(() => rm(tempDir, { recursive: true }));

const NOW = { pid: 7, startedAt: new Date(0), isAlive: (pid: number) => pid === 8 };

it('what killed processes have left is removed, and nothing else', async () => {
  const [own, other] = await Promise.all([connectionFolder(tempDir, 7), connectionFolder(tempDir, 8)]);
  await connectionFolder(tempDir, 9);
  await mkdir(join(tempDir, 'hb-vm-x'));
  await mkdir(join(tempDir, 'somebody-s'));
  await removeLeftovers(tempDir, NOW);
  expect(await readdir(tempDir)).toEqual(
    [basename(own), basename(other), 'hb-vm-x', 'somebody-s'].toSorted(),
  );
});

it('a folder with our pid from before our start is one of those', async () => {
  await connectionFolder(tempDir, 7);
  await removeLeftovers(tempDir, { ...NOW, startedAt: new Date(Date.now() + 60_000) });
  expect(await readdir(tempDir)).toEqual([]);
});

it('a folder that is not there has none', async () => {
  await removeLeftovers(join(tempDir, 'missing'), NOW);
});

it('this process is alive', () => {
  expect(isProcessAlive(process.pid)).toBe(true);
});

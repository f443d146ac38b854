import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isAlive, type Processes, processesOf, startOf } from './processes.ts';

let directory: string;
let processes: Processes;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'processes-test-'));
  mkdirSync(join(directory, 'log'));
  processes = processesOf(directory);
});
afterEach(async () => {
  for (const role of processes.roles()) await processes.kill(role);
  rmSync(directory, { recursive: true, force: true });
});

test('a process is found and ended through another object on the same directory', async () => {
  const pid = await processes.start('sleeper', ['sleep', '60']);
  const other = processesOf(directory);
  expect(other.record('sleeper')).toMatchObject({ role: 'sleeper', pid, argv: ['sleep', '60'] });
  expect(other.alive('sleeper')).toBe(true);
  await other.stop('sleeper');
  expect(processes.alive('sleeper')).toBe(false);
});

test('restart gives a running process its peace and starts an ended one with the same command', async () => {
  const first = await processes.start('sleeper', ['sleep', '60']);
  expect(await processes.restart('sleeper')).toBe(first);
  await processes.kill('sleeper');
  const second = await processes.restart('sleeper');
  expect(second).not.toBe(first);
  expect(processes.record('sleeper')?.argv).toEqual(['sleep', '60']);
  await expect(processes.restart('never')).rejects.toThrow('never was never started');
});

test('a process that ignores SIGTERM is killed after its grace', async () => {
  await processes.start('stubborn', ['sh', '-c', 'trap "" TERM; echo ready; while :; do sleep 1; done']);
  while (!processes.logTail('stubborn').includes('ready')) await new Promise((done) => setTimeout(done, 10));
  await processes.stop('stubborn', 100);
  expect(processes.alive('stubborn')).toBe(false);
});

test('a pid that belongs to another process by now is never signalled', async () => {
  const pid = await processes.start('sleeper', ['sleep', '60']);
  const file = join(directory, 'processes.json');
  const original = readFileSync(file, 'utf8');
  const stored: Record<string, { startedAt: string }> = JSON.parse(original);
  stored['sleeper']!.startedAt = 'earlier';
  writeFileSync(file, JSON.stringify(stored));
  expect(processes.alive('sleeper')).toBe(false);
  await processes.kill('sleeper');
  expect(startOf(pid)).toBeDefined();
  writeFileSync(file, original);
});

test('a command that does not exist is an error that names it', async () => {
  await expect(processes.start('x', ['no-such-command'])).rejects.toThrow(/no-such-command/);
});

test('this process is alive and one that never was is not', () => {
  expect(isAlive({ pid: process.pid, startedAt: startOf(process.pid) ?? '' })).toBe(true);
  expect(startOf(2 ** 22 + 1)).toBeUndefined();
});

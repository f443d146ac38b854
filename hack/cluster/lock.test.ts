import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { withLock } from './lock.ts';

let path: string;
let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'lock-test-'));
  path = join(directory, 'deep', 'lock');
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test('two that want the lock have it one after the other, and the second says that it waits', async () => {
  const order: string[] = [];
  const lines: string[] = [];
  const work = (name: string) => async () => {
    order.push(`${name} in`);
    await sleep(30);
    order.push(`${name} out`);
  };
  await Promise.all([
    withLock(path, 'this', (line) => lines.push(line), work('a')),
    withLock(path, 'this', (line) => lines.push(line), work('b')),
  ]);
  expect(order).toEqual(['a in', 'a out', 'b in', 'b out']);
  expect(lines).toEqual(['another process is busy with this; waiting for it (0 s)']);
});

test.each([
  ['is gone', JSON.stringify({ pid: 1, startedAt: 'another boot+1' })],
  ['left half a record', '{"pid": 1'],
])('a lock whose owner %s is taken over without a word', async (_what, record) => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, record);
  const lines: string[] = [];
  const answer = await withLock(
    path,
    'this',
    (line) => lines.push(line),
    async () => 'done',
  );
  expect({ answer, lines }).toEqual({ answer: 'done', lines: [] });
});

test('the lock is free again after work that threw', async () => {
  const failing = withLock(
    path,
    'this',
    () => {},
    async () => Promise.reject(new Error('no')),
  );
  await expect(failing).rejects.toThrow('no');
  expect(existsSync(path)).toBe(false);
});

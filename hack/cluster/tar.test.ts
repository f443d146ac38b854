import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { run } from './run.ts';
import { type TarEntry, text, writeTar } from './tar.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'tar-test-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const long = `${'d'.repeat(90)}/${'f'.repeat(120)}`;
const entries: TarEntry[] = [
  { kind: 'directory', name: 'bin', mode: 0o1777 },
  { kind: 'file', name: 'bin/tool', mode: 0o755, content: text('#!/bin/sh\n') },
  { kind: 'symlink', name: 'bin/sh', target: 'tool' },
  { kind: 'directory', name: 'd'.repeat(90), mode: 0o755 },
  { kind: 'file', name: long, mode: 0o600, content: text('x'.repeat(513)) },
  { kind: 'symlink', name: 'far', target: long },
  { kind: 'file', name: 'größe', mode: 0o644, content: text('') },
];

describe('an archive', () => {
  test('is read by the real tar with names, modes, owners, links and contents as given', async () => {
    const path = join(directory, 'a.tar');
    const { size } = writeTar(path, entries);
    expect(size).toBe(readFileSync(path).length);
    const listing = await run(['tar', '--numeric-owner', '-tvf', path], {
      env: { TZ: 'UTC', LC_ALL: 'C.UTF-8' },
    });
    const lines = listing.trim().split('\n');
    expect(lines.map((line) => line.replace(/\s+/g, ' '))).toEqual([
      'drwxrwxrwt 0/0 0 1970-01-01 00:00 bin/',
      '-rwxr-xr-x 0/0 10 1970-01-01 00:00 bin/tool',
      'lrwxrwxrwx 0/0 0 1970-01-01 00:00 bin/sh -> tool',
      `drwxr-xr-x 0/0 0 1970-01-01 00:00 ${'d'.repeat(90)}/`,
      `-rw------- 0/0 513 1970-01-01 00:00 ${long}`,
      `lrwxrwxrwx 0/0 0 1970-01-01 00:00 far -> ${long}`,
      '-rw-r--r-- 0/0 0 1970-01-01 00:00 größe',
    ]);
    expect(await run(['tar', '-xOf', path, long])).toBe('x'.repeat(513));
  });

  test('has the same bytes whether a file comes from memory or from disk', () => {
    const first = join(directory, 'first.tar');
    writeTar(first, entries);
    const content = readFileSync(first);
    const one = writeTar(join(directory, '1.tar'), [{ kind: 'file', name: 'x', mode: 0o644, content }]);
    const two = writeTar(join(directory, '2.tar'), [
      { kind: 'file', name: 'x', mode: 0o644, content: { path: first } },
    ]);
    expect(one).toEqual(two);
  });
});

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { writeCpio } from './cpio.ts';

function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), 'cpio-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

it('an archive has one member for each entry, each at a multiple of four bytes, and its end', () => {
  const file = join(scratch(), 'archive');
  writeCpio(file, [
    { kind: 'directory', name: 'etc', mode: 0o755 },
    { kind: 'file', name: 'etc/name', mode: 0o644, content: Buffer.from('guest') },
    { kind: 'symlink', name: 'bin', target: 'usr/bin' },
  ]);
  const bytes = readFileSync(file);
  const members: [string, string, string][] = [];
  for (let at = 0; at < bytes.length; ) {
    const field = (index: number) =>
      Number.parseInt(bytes.toString('latin1', at + 6 + 8 * index, at + 14 + 8 * index), 16);
    expect(bytes.toString('latin1', at, at + 6)).toBe('070701');
    const content = Math.ceil((at + 110 + field(11)) / 4) * 4;
    const name = bytes.toString('utf8', at + 110, at + 110 + field(11) - 1);
    members.push([name, field(1).toString(8), bytes.toString('utf8', content, content + field(6))]);
    at = Math.ceil((content + field(6)) / 4) * 4;
  }
  expect(members).toEqual([
    ['etc', '40755', ''],
    ['etc/name', '100644', 'guest'],
    ['bin', '120777', 'usr/bin'],
    ['TRAILER!!!', '0', ''],
  ]);
});

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { markedCommand, shellCommand, shellFile, shellScript } from './marked-command.ts';

function run(words: readonly string[], input?: string | Buffer) {
  return spawnSync(words[0]!, words.slice(1), {
    encoding: 'utf8',
    ...(input === undefined ? {} : { input }),
  });
}

describe.each([
  ['without input', undefined],
  ['with input', 'END'],
])('a marked command %s', (_name, endMark) => {
  const marked = (words: readonly string[]) => markedCommand('some-id', words, endMark);

  it.each([
    ['true', 0],
    ['exit 1', 1],
    ['/etc/passwd', 126],
    ['no-such-program', 127],
    ['exit 137', 137],
  ])('%j ends with %i', (command, code) => {
    expect(run(marked(shellCommand(command)), '').status).toBe(code);
  });

  it('sees its own words untouched, and its id', () => {
    const { stdout } = run(marked(shellCommand(`echo "it's $HB_EXEC_ID"  'a  b' \\$HOME "$0" $#`)), '');
    expect(stdout).toBe("it's some-id a  b $HOME sh 0\n");
  });

  it('gets arguments as they are', () => {
    const { stdout } = run(marked(shellScript('printf "<%s>" "$@"', "it's", '$(x)', 'a b', '')), '');
    expect(stdout).toBe("<it's><$(x)><a b><>");
  });

  it('may come from a file, which is gone when it runs', () => {
    const folder = mkdtempSync(join(tmpdir(), 'marked-'));
    const file = join(folder, "it's");
    writeFileSync(file, 'echo "$HB_EXEC_ID"; cat; exit 3');
    const { status, stdout } = run(marked(shellFile(file)), 'in');
    expect({ status, stdout, left: existsSync(file) }).toEqual({
      status: 3,
      stdout: 'some-id\nin',
      left: false,
    });
    rmSync(folder, { recursive: true });
  });
});

describe('a marked command with input', () => {
  it('says on stderr that it has ended', () => {
    expect(run(markedCommand('id', shellCommand('echo no >&2'), 'END'), '').stderr).toBe('no\nEND');
  });

  it('ends with 128 and the number of the signal that ended it', () => {
    expect(run(markedCommand('id', shellCommand('kill -KILL $$'), 'END'), '').status).toBe(137);
  });

  it('takes all of its input, though the command does not', async () => {
    const words = markedCommand('id', shellCommand('head -c 3; exit 4'), 'END');
    const child = spawn(words[0]!, words.slice(1), { stdio: ['pipe', 'ignore', 'ignore'] });
    let brokenPipe = false;
    child.stdin.on('error', () => {
      brokenPipe = true;
    });
    child.stdin.end(Buffer.alloc(5_000_000));
    const code = await new Promise((resolve) => child.on('exit', resolve));
    expect({ code, brokenPipe }).toEqual({ code: 4, brokenPipe: false });
  });
});

import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { KILL_SCRIPT, killArguments } from './kill-script.ts';
import { markedCommand, shellCommand } from './marked-command.ts';

/** A length of sleep that names the processes of one test on this machine. */
const nap = () => `${100_000 + Math.floor(Math.random() * 800_000)}`;

function livingSleeps(seconds: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      return words.includes(seconds) && words[0]?.endsWith('sleep') === true;
    } catch {
      return false;
    }
  });
}

const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
});

async function startMarked(
  shell: readonly string[],
  id: string,
  command: string,
  seconds: string,
  count: number,
) {
  const words = [...shell, ...markedCommand(id, shellCommand(command)).slice(1)];
  const child = spawn(words[0]!, words.slice(1), {
    detached: true,
    stdio: 'ignore',
  });
  started.push(child);
  for (let i = 0; livingSleeps(seconds).length < count && i < 500; i++) await sleep(10);
  expect(livingSleeps(seconds)).toHaveLength(count);
  return child;
}

const shells = [['dash'], ['bash'], ['busybox', 'sh']].filter(
  ([name]) => spawnSync(name!, ['-c', 'true']).error === undefined,
);

// It looks at every process of this machine, which may be many.
const TIMEOUT_MS = 60_000;

describe.each(shells.map((shell) => [shell.join(' '), shell] as const))(
  'the kill script in %s',
  { timeout: TIMEOUT_MS },
  (_name, shell) => {
    const kill = (id: string) =>
      spawnSync(shell[0]!, [...shell.slice(1), '-c', KILL_SCRIPT, 'sh', ...killArguments(id, 'KILL')], {
        encoding: 'utf8',
        timeout: 60_000,
      });

    it.each([
      ['the command and its children', (s: string) => `sleep ${s} & sleep ${s}`, 2],
      ['children of a subshell that has ended', (s: string) => `(sleep ${s} & sleep ${s} &); sleep ${s}`, 3],
      [
        'one that took a session of its own',
        (s: string) => `setsid sleep ${s} & nohup sleep ${s} & sleep ${s}`,
        3,
      ],
      ['one that cleared its environment', (s: string) => `env -i sleep ${s} & sleep ${s}`, 2],
      [
        'one that cleared its environment in a session of its own',
        (s: string) => `env -i setsid sleep ${s} & wait`,
        1,
      ],
    ])('ends %s (BR-34)', async (_what, command, count) => {
      const seconds = nap();
      const id = randomUUID();
      await startMarked(shell, id, command(seconds), seconds, count);
      const { status, stdout, stderr } = kill(id);
      expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
      expect(livingSleeps(seconds)).toEqual([]);
    });

    it('leaves the processes of another command alone', async () => {
      const seconds = nap();
      const id = randomUUID();
      await startMarked(shell, id, `sleep ${seconds} & sleep ${seconds}`, seconds, 2);
      expect(kill(randomUUID()).status).toBe(0);
      expect(livingSleeps(seconds)).toHaveLength(2);
      kill(id);
      expect(livingSleeps(seconds)).toEqual([]);
    });

    it('outruns a command that keeps starting others', async () => {
      const seconds = nap();
      const id = randomUUID();
      const spawner = `i=0; while [ $i -lt 200 ]; do sleep ${seconds} & i=$((i + 1)); sleep 0.01; done`;
      await startMarked(shell, id, spawner, seconds, 3).catch(() => undefined);
      expect(kill(id).status).toBe(0);
      await sleep(100);
      expect(livingSleeps(seconds)).toEqual([]);
    });
  },
);

describe('the kill script', { timeout: TIMEOUT_MS }, () => {
  it('is not misled by a process whose name looks like a status line', async () => {
    const seconds = nap();
    const id = randomUUID();
    const folder = mkdtempSync(join(tmpdir(), 'kill-'));
    const link = join(folder, ') Z 1 1 (');
    const sleepPath = execFileSync('sh', ['-c', 'readlink -f "$(command -v sleep)"'], {
      encoding: 'utf8',
    }).trim();
    execFileSync('cp', [sleepPath, link]);
    const child = spawn('sh', markedCommand(id, shellCommand(`'${link}' ${seconds}`)).slice(1), {
      detached: true,
      stdio: 'ignore',
    });
    started.push(child);
    const ended = new Promise((resolve) => child.on('exit', (_code, signal) => resolve(signal)));
    await sleep(200);
    expect(spawnSync('sh', ['-c', KILL_SCRIPT, 'sh', ...killArguments(id, 'KILL')]).status).toBe(0);
    expect(await ended).toBe('SIGKILL');
    rmSync(folder, { recursive: true });
  });
});

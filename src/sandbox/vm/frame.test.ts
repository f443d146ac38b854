import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { CappedOutput } from '../command/collect.ts';
import { shellCommand } from '../command/marked-command.ts';
import { Frame } from './frame.ts';

let ids = 0;
const newId = () => `<mark-${ids++}>`;

/** Runs the frame in a shell of this machine, as the other end does. */
async function framed(command: string) {
  const stderr = new CappedOutput(1000);
  const frame = new Frame(shellCommand(command), newId, stderr);
  const [program = '', ...args] = frame.words;
  const { status, stderr: said } = spawnSync(program, args);
  await frame.stderr.write(said);
  await frame.flush();
  return { status, frame, stderr: Buffer.from(stderr.kept).toString() };
}

describe('the frame around a command', () => {
  it.each([
    ['exit 0', 0],
    ['exit 7', 7],
    ['exit 255', 255],
    ['kill -KILL $$', 137],
    ['kill -TERM $$', 143],
  ])('tells the exit code of %j', async (command, exitCode) => {
    const { status, frame } = await framed(command);
    expect(frame.exitCode(status ?? undefined)).toBe(exitCode);
  });

  it('leaves stderr to the command, without a word about a child that was killed', async () => {
    expect((await framed('echo one >&2; exit 255')).stderr).toBe('one\n');
    expect((await framed('kill -KILL $$')).stderr).toBe('');
  });

  it.each([255, undefined])('takes ssh’s own end (%s) for nobody’s exit code', async (exit) => {
    const { frame } = await framed('exit 0');
    expect(frame.begun).toBe(true);
    expect(frame.exitCode(exit)).toBeUndefined();
  });

  it('knows of a command that was never begun', () => {
    const frame = new Frame(shellCommand('true'), newId, undefined);
    expect(frame.begun).toBe(false);
    expect(frame.exitCode(0)).toBeUndefined();
  });
});

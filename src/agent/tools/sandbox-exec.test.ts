import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type LocalSandbox, startLocalSandbox } from '../../../test/fakes/local-sandbox.ts';
import { SandboxLostError, SCRATCH } from '../../sandbox/port.ts';
import { redactNothing } from '../redaction.ts';
import { type SandboxExecOptions, sandboxExec } from './sandbox-exec.ts';
import { captureScript, parseReport } from './sandbox-exec-script.ts';
import { createSpillCounter } from './spill.ts';

let sandbox: LocalSandbox;
let options: SandboxExecOptions;

beforeEach(async () => {
  sandbox = await startLocalSandbox();
  options = {
    sandbox,
    counter: createSpillCounter(),
    redact: redactNothing,
    signal: new AbortController().signal,
    nonce: () => 'n0nce',
  };
});
afterEach(() => sandbox.cleanup());

const run = async (command: string, more: Partial<SandboxExecOptions> = {}) =>
  (await sandboxExec(command, { ...options, ...more })).result;
const inSandbox = (path: unknown): Promise<Buffer> =>
  readFile(String(path).replace(SCRATCH, sandbox.directory));

test('small output comes back whole, in one exec, with the exit code', async () => {
  const result = await run('echo out; echo err >&2; printf "it\'s"; exit 3');
  expect(result).toEqual({ exit_code: 3, stdout: "out\nit's", stderr: 'err\n' });
  expect(sandbox.commands).toHaveLength(1);
});

test('an inline answer leaves no file and uses no number', async () => {
  await run('echo small');
  expect(options.counter.last).toBe(0);
  expect(await readdir(join(sandbox.directory, '_out'))).toEqual([]);
});

test('4096 bytes stay inline, 4097 are spilled', async () => {
  const inline = await run('head -c 4096 /dev/zero | tr "\\0" x');
  expect(inline).toEqual({ exit_code: 0, stdout: 'x'.repeat(4096), stderr: '' });
  const spilled = await run('head -c 4097 /dev/zero | tr "\\0" x');
  expect(spilled).toMatchObject({
    exit_code: 0,
    stdout: 'x'.repeat(3072),
    stdout_truncated: true,
    stdout_file: '/tmp/data/_out/1.txt',
    stdout_bytes: 4097,
    stdout_lines: 0,
    stdout_tail: 'x'.repeat(1024),
    stderr: '',
  });
  expect(await inSandbox(spilled.stdout_file)).toHaveLength(4097);
});

test('stdout and stderr of one command, and the next command, never share a file', async () => {
  const both = await run('seq 2000; seq 2000 >&2');
  expect(both).toMatchObject({ stdout_file: '/tmp/data/_out/1.txt', stderr_file: '/tmp/data/_out/2.txt' });
  expect(both).toMatchObject({ stdout_lines: 2000, stderr_lines: 2000 });
  expect(await run('seq 3000')).toMatchObject({ stdout_file: '/tmp/data/_out/3.txt' });
  expect(options.counter.last).toBe(3);
});

test('BR-33 a: a character at the cut is kept whole in the file and left out of the preview', async () => {
  const result = await run("python3 -c \"import sys; sys.stdout.write('x'*4095 + 'é\\n')\"");
  expect(result.stdout_bytes).toBe(4098);
  const file = await inSandbox(result.stdout_file);
  expect(file.toString('utf8').endsWith('é\n')).toBe(true);
  expect(result.stdout_tail).toBe(`${'x'.repeat(1021)}é\n`);
  const cut = await run("python3 -c \"import sys; sys.stdout.write('é'*2000 + 'x' + 'é'*2000)\"");
  expect(cut.stdout).toBe('é'.repeat(1536));
  const odd = await run("python3 -c \"import sys; sys.stdout.write('x' + 'é'*3000)\"");
  expect(odd.stdout).toBe(`x${'é'.repeat(1535)}`);
  expect(odd.stdout_tail).toBe('é'.repeat(512));
});

test('BR-33 b: a stray byte costs one character, and the byte count says so', async () => {
  const result = await run("printf '\\324ok'");
  expect(result).toEqual({ exit_code: 0, stdout: '\ufffdok', stdout_bytes: 3, stderr: '' });
});

test('BR-33 c: 64 KiB of random bytes arrive in the file unchanged', async () => {
  const result = await run('head -c 65536 /dev/urandom | tee copy.bin');
  expect(result).toMatchObject({ exit_code: 0, stdout_bytes: 65536 });
  expect((await inSandbox(result.stdout_file)).equals(await inSandbox(`${SCRATCH}/copy.bin`))).toBe(true);
});

test('a command that takes too long is killed and answered with what it printed', async () => {
  const { result, timedOut } = await sandboxExec('echo begun; sleep 30', { ...options, timeoutMs: 300 });
  expect(timedOut).toBe(true);
  expect(result).toMatchObject({ timed_out: true, stdout: 'begun\n', stderr: '' });
  expect(result.error).toMatch(/killed after 0.3 s/);
  expect(result).not.toHaveProperty('exit_code');
});

test('a background process that keeps its output open does not hold up the answer', async () => {
  const startedAt = Date.now();
  expect(await run('sleep 20 & echo $! > pid; echo done')).toMatchObject({ exit_code: 0, stdout: 'done\n' });
  expect(Date.now() - startedAt).toBeLessThan(10_000);
  await run('kill $(cat pid)');
});

test('a command longer than an argument may be is run all the same', async () => {
  const result = await run(`# ${'x'.repeat(200_000)}\necho "$0 ran"`);
  expect(result.stdout).toMatch(/ ran\n$/);
});

test('a command cannot read the stdin that carries it, nor forge the report on its own stdout', async () => {
  expect(await run('cat; echo "begin n0nce 0"; echo "end n0nce"')).toMatchObject({
    exit_code: 0,
    stdout: 'begin n0nce 0\nend n0nce\n',
  });
});

test('a command that kills its shell is answered with an error that says so', async () => {
  expect(await run('kill -9 $PPID')).toMatchObject({ error: expect.stringMatching(/outcome is unknown/) });
});

test('a secret across the cut of a preview is removed whole', async () => {
  const secret = 'glpat-0123456789abcdef';
  const redact = (text: string): string => text.replaceAll(secret, '[redacted]');
  const result = await run(`printf '%03065d${secret}' 0; printf '%05000d' 0; printf '${secret}%01015d' 0`, {
    redact,
  });
  expect(JSON.stringify(result)).not.toContain('glpat-');
  expect(String(result.stdout).length).toBeGreaterThan(3000);
});

test('a command that removes the folder of its own output is answered with what is left', async () => {
  expect(await run('echo lost; rm -r _out; exit 3')).toEqual({ exit_code: 3, stdout: '', stderr: '' });
  expect(await run('echo next')).toMatchObject({ stdout: 'next\n' });
});

test('the frame is read strictly', () => {
  const frame = 'begin n 0\nstdout 2 1\naGk=\n\nstderr 0 -\n\n\nend n\n';
  expect(parseReport(Buffer.from(frame), 'n')).toMatchObject({ exitCode: 0, stdout: { bytes: 2, lines: 1 } });
  for (const broken of [
    frame.slice(0, -6),
    frame.replace('aGk=', 'a?k='),
    frame.replace('stdout 2', 'stdout -2'),
    frame.replace('stdout 2 1', 'stdout 2 x'),
    frame.replace('begin n 0', 'begin n 9999'),
    `${frame}more`,
    '',
  ]) {
    expect(parseReport(Buffer.from(broken), 'n')).toBeUndefined();
  }
});

test('the wrapper works with the tools of busybox', async ({ skip }) => {
  const installed = await sandbox.exec('mkdir bin && busybox --install -s bin');
  skip(installed.kind === 'Exited' && installed.exitCode !== 0, 'no busybox on this machine');
  const files = {
    nonce: 'n',
    stdoutFile: `${SCRATCH}/_out/1.txt`,
    stderrFile: `${SCRATCH}/_out/2.txt`,
    maxFileBytes: 8192,
  };
  const { script } = captureScript('seq 2000; echo err >&2; exit 7', files);
  await sandbox.writeFile(`${SCRATCH}/wrapper`, Buffer.from(script.replaceAll(SCRATCH, sandbox.directory)));
  const ran = await sandbox.exec(`PATH=$PWD/bin busybox sh ${SCRATCH}/wrapper`);
  expect(parseReport(ran.stdout, 'n')).toMatchObject({
    exitCode: 7,
    stdout: { bytes: 8192, kept: true },
    stderr: { kept: false },
  });
});

describe('output without an end', () => {
  const maxFileBytes = 64 * 1024;

  test('is cut at the largest size, said so, and what comes after it in the command still runs', async () => {
    const result = await run('yes; echo over >&2; exit 5', { maxFileBytes });
    expect(result).toMatchObject({
      exit_code: 5,
      stdout_bytes: maxFileBytes,
      stdout_truncated: true,
      stderr: expect.stringMatching(/over\n$/),
      output_cut: expect.stringMatching(/^stdout reached 65536 bytes, the most that is kept/),
    });
    expect(await inSandbox(result.stdout_file)).toHaveLength(maxFileBytes);
  });

  test('is cut on stderr as well', async () => {
    const result = await run('yes >&2', { maxFileBytes });
    expect(result).toMatchObject({ stdout: '', stderr_bytes: maxFileBytes });
    expect(result.output_cut).toMatch(/^stderr reached/);
  });

  test('holds for the files that a command makes itself, and for a background process', async () => {
    await run('yes > own & wait', { maxFileBytes });
    expect(await inSandbox(`${SCRATCH}/own`)).toHaveLength(maxFileBytes);
  });

  test('cannot be had by a command that lifts the limit', async () => {
    const lift = 'ulimit -f unlimited; yes';
    // Root may lift it: a sandbox never runs as root, this test may.
    const asNobody = `setpriv --reuid=65534 --regid=65534 --clear-groups sh -c '${lift}'`;
    const command = process.getuid?.() === 0 ? asNobody : lift;
    expect(await run(command, { maxFileBytes })).toMatchObject({
      stdout_bytes: maxFileBytes,
    });
  });

  test('is not mentioned where nothing was cut', async () => {
    expect(await run('head -c 65535 /dev/zero', { maxFileBytes })).not.toHaveProperty('output_cut');
  });
});

test('a sandbox that starts no process any more is given up, and deleted', async () => {
  let deleted = false;
  const full: SandboxExecOptions['sandbox'] = {
    ref: { kind: 'Podman', name: 'full' },
    start: () => sandbox.start(),
    writeFile: (...args) => sandbox.writeFile(...args),
    streamToFile: (...args) => sandbox.streamToFile(...args),
    streamExec: (...args) => sandbox.streamExec(...args),
    readFile: (...args) => sandbox.readFile(...args),
    linger: (id) => sandbox.linger(id),
    exec: () => sandbox.exec('echo "sh: 0: Cannot fork" >&2; exit 2'),
    cleanup: async () => {
      deleted = true;
    },
  };
  await expect(run('true', { sandbox: full })).rejects.toThrow(SandboxLostError);
  expect(deleted).toBe(true);
});

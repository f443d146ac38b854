import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PathRefusedError } from '../../src/sandbox/command/path.ts';
import { type ExecResult, type Sandbox, SandboxLostError, SCRATCH } from '../../src/sandbox/port.ts';

export interface ConformanceBackend {
  /** A sandbox that has not been started. */
  make(): Promise<Sandbox>;
  /** Makes it disappear behind the operator's back. */
  lose(sandbox: Sandbox): Promise<void>;
  /** Whether it still exists. */
  exists(sandbox: Sandbox): Promise<boolean>;
  /** Whether it lingers; left out by a backend that keeps none. */
  lingers?(sandbox: Sandbox): Promise<boolean>;
  dispose(): Promise<void>;
}

declare module 'vitest' {
  interface TaskMeta {
    /** What a test of the conformance suite called, for the table at the end of `npm test`. */
    conformance?: { readonly backend: string; readonly methods: readonly string[] };
  }
}

const METHODS: ReadonlySet<PropertyKey> = new Set<keyof Sandbox>([
  'start',
  'exec',
  'writeFile',
  'streamToFile',
  'streamExec',
  'readFile',
  'cleanup',
  'linger',
]);

/** The same sandbox; the names of the methods that are called on it go into `called`. */
function noted(sandbox: Sandbox, called: Set<string>): Sandbox {
  return new Proxy(sandbox, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (!METHODS.has(name) || typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        called.add(String(name));
        return Reflect.apply(value, target, args);
      };
    },
  });
}

/** What every backend of the Sandbox port must do, on a real sandbox. */
export function sandboxConformance(name: string, open: () => Promise<ConformanceBackend>): void {
  describe(`${name}: a sandbox`, () => {
    let backend: ConformanceBackend;
    let sandbox: Sandbox;
    const called = new Set<string>();

    beforeAll(async () => {
      const opened = await open();
      backend = { ...opened, make: async () => noted(await opened.make(), called) };
      sandbox = await backend.make();
      await sandbox.start();
    });
    beforeEach(() => called.clear());
    afterEach(({ task }) => {
      task.meta.conformance = { backend: name, methods: [...called] };
    });
    afterAll(async () => {
      await sandbox?.cleanup();
      await backend?.dispose();
    });

    describe('runs commands', () => {
      it.each([
        ['true', 0],
        ['false', 1],
        ['exit 7', 7],
        ['/etc/passwd', 126],
        ['no-such-program', 127],
        ['kill -KILL $$', 137],
        ['kill -TERM $$', 143],
      ])('%j with exit code %i', async (command, exitCode) => {
        expect(await sandbox.exec(command)).toMatchObject({ kind: 'Exited', exitCode });
      });

      it('in a shell, words untouched', async () => {
        const result = await sandbox.exec(
          `printf '%s|' "it's" 'a  "b"' '$HOME' "\\\\n" é; echo; cd / && pwd`,
        );
        expect(text(result)).toBe(`it's|a  "b"|$HOME|\\n|é|\n/\n`);
      });

      it('with output on two streams', async () => {
        const result = await sandbox.exec('echo out; echo err >&2');
        expect(text(result)).toBe('out\n');
        expect(Buffer.from(result.stderr).toString()).toBe('err\n');
        expect(result).toMatchObject({ stdoutBytes: 4, stderrBytes: 4 });
      });

      it('with bytes that are no text (BR-33 b)', async () => {
        const result = await sandbox.exec(`printf '\\324ok'`);
        expect(result).toMatchObject({ kind: 'Exited', exitCode: 0, stdoutBytes: 3 });
        expect(Buffer.from(result.stdout)).toEqual(Buffer.from([0xd4, 0x6f, 0x6b]));
      });

      it('with a character across the 4096th byte (BR-33 a)', async () => {
        const result = await sandbox.exec(`head -c 4095 /dev/zero | tr '\\0' x; printf 'é\\n'`);
        expect(result.stdoutBytes).toBe(4098);
        expect(text(result).endsWith('xé\n')).toBe(true);
      });

      it('with no input when none is given', async () => {
        expect(await sandbox.exec('cat | wc -c')).toMatchObject({ exitCode: 0 });
      });

      it('with input', async () => {
        const stdin = randomBytes(100_000);
        const result = await sandbox.exec('sha256sum', { stdin });
        expect(text(result)).toContain(sha256(stdin));
      });

      it('longer than an argument may be', async () => {
        const filler = `: ${'x'.repeat(200_000)}\n`;
        const result = await sandbox.exec(`${filler}cat; echo done; exit 5`, { stdin: Buffer.from('in ') });
        expect(result).toMatchObject({ exitCode: 5 });
        expect(text(result)).toBe('in done\n');
      });

      it('side by side', async () => {
        const results = await Promise.all([1, 2, 3, 4].map((n) => sandbox.exec(`sleep 0.2; echo ${n}`)));
        expect(results.map(text)).toEqual(['1\n', '2\n', '3\n', '4\n']);
      });

      it('and keeps only so much of an output, and counts the rest', async () => {
        const result = await sandbox.exec('head -c 5000000 /dev/zero; head -c 3000 /dev/zero >&2', {
          maxOutputBytes: 1000,
        });
        expect(result).toMatchObject({ exitCode: 0, stdoutBytes: 5_000_000, stderrBytes: 3000 });
        expect(result.stdout).toHaveLength(1000);
        expect(result.stderr).toHaveLength(1000);
      });

      it('and keeps 1 MiB when nothing is said', async () => {
        const result = await sandbox.exec('head -c 2000000 /dev/zero');
        expect(result.stdout).toHaveLength(1024 * 1024);
      });
    });

    describe('streams input', () => {
      it.each([0, 1, 3 * 1024 * 1024])('of %i bytes to a command (BR-32)', async (size) => {
        const bytes = randomBytes(size);
        const result = await sandbox.streamExec('sha256sum', inChunks(bytes, 100_000));
        expect(result).toMatchObject({ kind: 'Exited', exitCode: 0 });
        expect(text(result)).toContain(sha256(bytes));
      });

      it('to a command that does not read all of it', async () => {
        const result = await sandbox.streamExec(
          'head -c 3; exit 4',
          inChunks(randomBytes(20_000_000), 64 * 1024),
        );
        expect(result).toMatchObject({ kind: 'Exited', exitCode: 4, stdoutBytes: 3 });
      });

      it('to a command that reads it slowly', async () => {
        const bytes = randomBytes(3 * 1024 * 1024);
        const slowly = 'for i in 1 2 3; do head -c 1048576; sleep 0.5; done | sha256sum';
        const result = await sandbox.streamExec(slowly, inChunks(bytes, 64 * 1024));
        expect(text(result)).toContain(sha256(bytes));
      });

      it('and rejects with the source’s error when it fails, the command ended', async () => {
        const broken = new Error('the source broke');
        await expect(sandbox.streamExec('cat; touch /tmp/data/went-on', failing(broken))).rejects.toBe(
          broken,
        );
        expect(text(await sandbox.exec('ls /tmp/data'))).not.toContain('went-on');
      });
    });

    describe('keeps files', () => {
      it.each([0, 1, 3 * 1024 * 1024])('of %i bytes as they are (BR-32)', async (size) => {
        const bytes = randomBytes(size);
        const path = `${SCRATCH}/files/of-${size}`;
        await sandbox.writeFile(path, bytes);
        expect(text(await sandbox.exec(`stat -c %s '${path}'; sha256sum <'${path}'`))).toContain(
          `${size}\n${sha256(bytes)}`,
        );
        expect(sha256(await readAll(sandbox, path))).toBe(sha256(bytes));
      });

      it.each([`it's "here"`, '-rf', '$(touch x)', 'a\nb', 'é ü', '*', 'x;y&z'])(
        'named %j',
        async (fileName) => {
          const path = `${SCRATCH}/names/${fileName}`;
          await sandbox.writeFile(path, Buffer.from(fileName));
          expect((await readAll(sandbox, path)).toString()).toBe(fileName);
        },
      );

      it('of any size, counted on the way', async () => {
        const bytes = Buffer.from('line\n'.repeat(100_000));
        const path = `${SCRATCH}/_out/lines.log`;
        expect(await sandbox.streamToFile(path, inChunks(bytes, 7777))).toEqual({
          bytes: 500_000,
          lines: 100_000,
        });
        expect(
          text(await sandbox.exec(`wc -lc <${path}`))
            .trim()
            .split(/\s+/),
        ).toEqual(['100000', '500000']);
      });

      it('in place of older ones', async () => {
        const path = `${SCRATCH}/again`;
        await sandbox.writeFile(path, Buffer.from('a long first text'));
        await sandbox.writeFile(path, Buffer.from('short'));
        expect((await readAll(sandbox, path)).toString()).toBe('short');
      });

      it('whole or not at all: a source that fails leaves what was there', async () => {
        const path = `${SCRATCH}/whole/file`;
        await sandbox.writeFile(path, Buffer.from('before'));
        const broken = new Error('the source broke');
        await expect(sandbox.streamToFile(path, failing(broken))).rejects.toBe(broken);
        expect((await readAll(sandbox, path)).toString()).toBe('before');
        expect(text(await sandbox.exec(`ls -A ${SCRATCH}/whole`))).toBe('file\n');
      });

      it('and hands them over in chunks of at most 64 KiB', async () => {
        const path = `${SCRATCH}/chunks`;
        await sandbox.exec(`head -c 1000000 /dev/zero >${path}`);
        let bytes = 0;
        for await (const chunk of sandbox.readFile(path)) {
          expect(chunk.length).toBeLessThanOrEqual(64 * 1024);
          bytes += chunk.length;
        }
        expect(bytes).toBe(1_000_000);
      });

      it('and lets a reader stop early, with no process left', async () => {
        const path = `${SCRATCH}/endless`;
        await sandbox.exec(`head -c 50000000 /dev/zero >${path}`);
        for await (const chunk of sandbox.readFile(path)) {
          expect(chunk.length).toBeGreaterThan(0);
          break;
        }
        expect(await living(sandbox, '[c]at -- /tmp/data/endless')).toBe(0);
      });

      it.each([
        [`${SCRATCH}/missing`, 'no such file'],
        [`${SCRATCH}/files`, 'not a regular file'],
      ])('and says why %s cannot be read', async (path, why) => {
        await expect(readAll(sandbox, path)).rejects.toThrow(why);
      });

      it('and says why one cannot be written', async () => {
        await sandbox.writeFile(`${SCRATCH}/plain`, Buffer.from('x'));
        await expect(sandbox.writeFile(`${SCRATCH}/plain/below`, Buffer.from('x'))).rejects.toThrow(
          '/tmp/data/plain/below',
        );
      });

      it.each(['/etc/passwd', '/tmp/data/../x', '/tmp/database', '', 'relative'])(
        'but none at %j',
        async (path) => {
          await expect(sandbox.writeFile(path, Buffer.alloc(1))).rejects.toThrow(PathRefusedError);
          await expect(sandbox.streamToFile(path, inChunks(Buffer.alloc(1), 1))).rejects.toThrow(
            PathRefusedError,
          );
          expect(() => sandbox.readFile(path)).toThrow(PathRefusedError);
        },
      );
    });

    describe('ends commands', () => {
      it.each([
        ['two in one group', 'sleep 61.1 & sleep 61.1', '[s]leep 61.1'],
        [
          'one that hangs up on its session',
          'setsid sleep 61.2 & nohup sleep 61.2 >/dev/null & sleep 61.2',
          '[s]leep 61.2',
        ],
        ['one that ignores signals', `trap '' TERM INT HUP; sleep 61.3; sleep 61.3`, '[s]leep 61.3'],
        [
          'one that has cleared its environment',
          'env -i sleep 61.4 & env -i setsid sleep 61.4 & sleep 61.4',
          '[s]leep 61.4',
        ],
        [
          'a daemon that hangs up, ignores signals and has closed its files',
          `(trap '' TERM HUP; setsid nohup sh -c 'exec <&- >&- 2>&-; sleep 61.5; sleep 61.5' &); sleep 61.5`,
          '[s]leep 61.5',
        ],
        [
          'a daemon that was forked twice, in a session of its own',
          `setsid sh -c '(sleep 61.6 >/dev/null 2>&1 &)'; sleep 61.6`,
          '[s]leep 61.6',
        ],
        [
          'a daemon that has nothing of its command any more: parent, session, environment, files',
          `env -i setsid sh -c '(sleep 61.7 <&- >&- 2>&- &)'; sleep 61.7`,
          '[s]leep 61.7',
        ],
        [
          'many that go on starting others',
          'i=0; while [ $i -lt 150 ]; do (sleep 61.9; sleep 61.9) & i=$((i + 1)); done; wait',
          '[s]leep 61.9',
        ],
      ])('at their time: %s (BR-34)', async (_what, command, pattern) => {
        let result = await sandbox.exec(`echo begun; ${command}`, { timeoutMs: 1_500 });
        // On a busy machine it may not even have begun by then.
        if (result.stdoutBytes === 0)
          result = await sandbox.exec(`echo begun; ${command}`, { timeoutMs: 15_000 });
        expect(result.kind).toBe('TimedOut');
        expect(text(result)).toBe('begun\n');
        expect(await living(sandbox, pattern)).toBe(0);
      });

      it('with the output until they are killed', async () => {
        const result = await sandbox.exec('head -c 900000 /dev/zero; sleep 61.8', { timeoutMs: 3_000 });
        expect(result).toMatchObject({ kind: 'TimedOut', stdoutBytes: 900_000 });
      });

      it('with what they say when they are asked to stop', async () => {
        const script = `trap 'echo last words; exit' TERM; while :; do sleep 0.1; done`;
        // Orphans that have ended: where nobody reaps them, a crowd that is none.
        await sandbox.exec('i=0; while [ $i -lt 300 ]; do (true &); i=$((i + 1)); done');
        let said = '';
        // A sandbox that gets no processor for some seconds says nothing in its grace.
        for (const end = Date.now() + 150_000; said === '' && Date.now() < end; )
          said = text(await sandbox.exec(script, { timeoutMs: 1_000 }));
        expect(said).toBe('last words\n');
      }, 240_000);

      it('and the sandbox is as good as before', async () => {
        expect(await sandbox.exec('echo here; exit 3')).toMatchObject({ exitCode: 3, stdoutBytes: 5 });
      });

      it('when the caller aborts, with the caller’s reason', async () => {
        const controller = new AbortController();
        const running = sandbox.exec('sleep 62.1 & sleep 62.1', { signal: controller.signal });
        setTimeout(() => controller.abort(new Error('cancelled')), 1_000);
        await expect(running).rejects.toThrow('cancelled');
        expect(await living(sandbox, '[s]leep 62.1')).toBe(0);
      });

      it('before they begin when the signal is aborted already', async () => {
        const signal = AbortSignal.abort(new Error('too late'));
        await expect(sandbox.exec('touch /tmp/data/never', { signal })).rejects.toThrow('too late');
        await expect(sandbox.writeFile('/tmp/data/never', Buffer.alloc(0), { signal })).rejects.toThrow(
          'too late',
        );
        expect(text(await sandbox.exec('ls /tmp/data'))).not.toContain('never');
      });

      it('and leaves others running', async () => {
        const other = sandbox.exec('sleep 4; echo survived');
        expect(await sandbox.exec('sleep 63', { timeoutMs: 500 })).toMatchObject({ kind: 'TimedOut' });
        expect(text(await other)).toBe('survived\n');
      });

      it('that have an input and do not read it', async () => {
        const result = await sandbox.streamExec('sleep 64.1', inChunks(randomBytes(20_000_000), 64 * 1024), {
          timeoutMs: 1_500,
        });
        expect(result).toMatchObject({ kind: 'TimedOut' });
        expect(await living(sandbox, '[s]leep 64.1')).toBe(0);
      });
    });

    it('starts twice without harm', async () => {
      await sandbox.writeFile(`${SCRATCH}/kept`, Buffer.from('kept'));
      await sandbox.start();
      expect((await readAll(sandbox, `${SCRATCH}/kept`)).toString()).toBe('kept');
    });

    it('that disappears while a command runs is lost', async () => {
      const doomed = await backend.make();
      await doomed.start();
      const running = doomed.exec('sleep 65').then(
        () => undefined,
        (error: unknown) => error,
      );
      await sleep(500);
      await backend.lose(doomed);
      expect(await running).toBeInstanceOf(SandboxLostError);
      await expect(doomed.exec('true')).rejects.toBeInstanceOf(SandboxLostError);
      await expect(doomed.writeFile(`${SCRATCH}/x`, Buffer.alloc(1))).rejects.toBeInstanceOf(
        SandboxLostError,
      );
      await doomed.cleanup();
    });

    it('lingers for its session where it can, and is gone where it cannot', async () => {
      const one = await backend.make();
      await one.start();
      await one.linger('session-1');
      if (backend.lingers === undefined) await expect.poll(() => backend.exists(one), GONE).toBe(false);
      else await expect.poll(() => backend.lingers?.(one), GONE).toBe(true);
      await one.cleanup();
    });

    it('is gone after cleanup, and another cleanup does no harm', async () => {
      const short = await backend.make();
      await short.start();
      await short.cleanup();
      await short.cleanup();
      await expect.poll(() => backend.exists(short), GONE).toBe(false);
    });
  });
}

const GONE = { timeout: 60_000, interval: 100 };

function text(result: ExecResult): string {
  return Buffer.from(result.stdout).toString('utf8');
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

async function readAll(sandbox: Sandbox, path: string): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of sandbox.readFile(path)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Processes that match and are not zombies: those are dead, and only wait for the container's first process. */
async function living(sandbox: Sandbox, pattern: string): Promise<number> {
  const result = await sandbox.exec(`ps -eo stat=,args= | grep -v '^Z' | grep -c -e '${pattern}'`);
  return Number(text(result).trim());
}

async function* inChunks(bytes: Uint8Array, size: number): AsyncIterable<Uint8Array> {
  for (let offset = 0; offset < bytes.length; offset += size) yield bytes.subarray(offset, offset + size);
}

async function* failing(error: Error): AsyncIterable<Uint8Array> {
  yield Buffer.from('half of it');
  await sleep(200);
  throw error;
}

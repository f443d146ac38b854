import { describe, expect, it } from 'vitest';
import { type Sandbox, SandboxLostError } from '../../sandbox/port.ts';
import { startingSandbox } from './starting-sandbox.ts';

function slowly() {
  const started = Promise.withResolvers<void>();
  const done: string[] = [];
  const sandbox: Sandbox = {
    ref: { kind: 'PodPool', name: 'p' },
    start: () => started.promise,
    exec: async (command) => {
      done.push(command);
      return {
        kind: 'Exited',
        exitCode: 0,
        stdout: Buffer.of(),
        stderr: Buffer.of(),
        stdoutBytes: 0,
        stderrBytes: 0,
      };
    },
    writeFile: async () => void done.push('writeFile'),
    streamToFile: async () => ({ bytes: 0, lines: 0 }),
    streamExec: () => Promise.reject(new Error('not used')),
    readFile: async function* () {
      done.push('readFile');
      yield Buffer.from('x');
    },
    cleanup: async () => void done.push('cleanup'),
    linger: async () => undefined,
  };
  return { started, done, wrapped: startingSandbox(sandbox, new AbortController().signal) };
}

describe('startingSandbox', () => {
  it('runs nothing before the sandbox is ready', async () => {
    const { started, done, wrapped } = slowly();
    const results = Promise.all([
      wrapped.exec('ls'),
      wrapped.writeFile('f', Buffer.of()),
      wrapped.readFile('f')[Symbol.asyncIterator]().next(),
    ]);
    await new Promise(setImmediate);
    expect(done).toEqual([]);
    started.resolve();
    await results;
    expect(done.toSorted()).toEqual(['ls', 'readFile', 'writeFile']);
  });

  it('is a lost sandbox to whoever uses it when its start has failed, and no unhandled rejection', async () => {
    const { started, done, wrapped } = slowly();
    started.reject(new Error('exec timed out'));
    await new Promise(setImmediate);
    await expect(wrapped.exec('ls')).rejects.toThrow(SandboxLostError);
    await expect(wrapped.exec('ls')).rejects.toThrow('exec timed out');
    expect(done).toEqual([]);
  });

  it('can be given back while it still starts', async () => {
    const { done, wrapped } = slowly();
    await wrapped.cleanup();
    expect(done).toEqual(['cleanup']);
  });
});

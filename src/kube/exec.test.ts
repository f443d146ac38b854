import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { type ExecServer, type ExecServerOptions, startExecServer } from '../../test/fakes/exec-server.ts';
import { type ExecOptions, exec } from './exec.ts';
import { execConnection } from './exec-connection.ts';
import { ExecError } from './exec-error.ts';

const servers: ExecServer[] = [];
afterEach(async () => {
  const violations = servers.flatMap((server) => server.violations);
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  expect(violations).toEqual([]);
});

async function serve(options: ExecServerOptions): Promise<ExecServer> {
  const server = await startExecServer(options);
  servers.push(server);
  return server;
}

class Collector {
  readonly chunks: Uint8Array[] = [];
  write(chunk: Uint8Array): void {
    this.chunks.push(chunk);
  }
  get bytes(): Buffer {
    return Buffer.concat(this.chunks);
  }
}

const target = {
  namespace: 'sandboxes',
  pod: 'one',
  container: 'sandbox',
  command: ['sh', '-c', 'echo "a b" & c=d'],
};

function connectionTo(url: string) {
  const credentials = async () => ({ headers: { Authorization: 'Bearer secret' }, tls: {} });
  return execConnection({ server: new URL(url), credentials });
}

function run(server: ExecServer, options: Partial<ExecOptions> = {}) {
  return exec(connectionTo(server.url), { ...target, ...options });
}

const failure = (promise: Promise<unknown>): Promise<ExecError> =>
  promise.then(
    () => Promise.reject(new Error('it succeeded')),
    (error) => (error instanceof ExecError ? error : Promise.reject(error)),
  );

async function* chunksOf(total: number, size: number): AsyncIterable<Uint8Array> {
  for (let sent = 0; sent < total; sent += size)
    yield Buffer.alloc(Math.min(size, total - sent), sent / size);
}

describe('an exec that goes well', () => {
  it('asks for the command as it is, with the token and only the streams it has', async () => {
    const server = await serve({ token: 'secret', script: (session) => session.exit(0) });
    expect(await run(server, { stdout: new Collector() })).toEqual({ exitCode: 0 });
    const [session] = server.sessions;
    expect(session!.query.getAll('command')).toEqual(target.command);
    expect(session!.path).toBe('/api/v1/namespaces/sandboxes/pods/one/exec');
    expect(Object.fromEntries(session!.query)).toMatchObject({ container: 'sandbox', stdout: 'true' });
    expect(session!.query.has('stdin')).toBe(false);
    expect(session!.query.has('stderr')).toBe(false);
  });

  it.each([0, 1, 126, 127, 137, 255])('resolves with exit code %i from the status', async (code) => {
    const server = await serve({ script: (session) => session.exit(code) });
    expect(await run(server)).toEqual({ exitCode: code });
  });

  it('keeps stdout and stderr apart and every byte as it is (BR-33)', async () => {
    const server = await serve({
      script: async (session) => {
        await session.send(1, Buffer.from([0xd4, 0x6f, 0x6b]));
        await session.send(1, '');
        await session.send(2, 'warning');
        await session.send(1, Buffer.from([0xc3]));
        await session.send(1, Buffer.from([0xa9]));
        await session.exit(0);
      },
    });
    const stdout = new Collector();
    const stderr = new Collector();
    await run(server, { stdout, stderr });
    expect(stdout.bytes).toEqual(Buffer.from([0xd4, 0x6f, 0x6b, 0xc3, 0xa9]));
    expect(stderr.bytes.toString()).toBe('warning');
  });

  it.each([0, 1, 128 * 1024, 3 * 1024 * 1024])('half-closes stdin after %i bytes (BR-32)', async (total) => {
    let received: Buffer = Buffer.alloc(0);
    const server = await serve({
      script: async (session) => {
        received = await session.stdin();
        await session.exit(0);
      },
    });
    expect(await run(server, { stdin: chunksOf(total, 300_000) })).toEqual({ exitCode: 0 });
    const sent: Uint8Array[] = [];
    for await (const chunk of chunksOf(total, 300_000)) sent.push(chunk);
    expect(received.equals(Buffer.concat(sent))).toBe(true);
  });

  it('hands over all output before the exit code, also to a slow sink', async () => {
    const server = await serve({
      script: async (session) => {
        for (let i = 0; i < 64; i++) void session.send(1, Buffer.alloc(32 * 1024, i));
        await session.exit(3);
        session.hangUp();
      },
    });
    let taken = 0;
    const stdout = {
      write: async (chunk: Uint8Array) => {
        await sleep(2);
        taken += chunk.length;
      },
    };
    expect(await run(server, { stdout })).toEqual({ exitCode: 3 });
    expect(taken).toBe(64 * 32 * 1024);
  });

  it('reads a status that comes in pieces', async () => {
    const server = await serve({
      script: async (session) => {
        const text = Buffer.from(JSON.stringify({ status: 'Success', message: 'é' }));
        for (const byte of text) await session.send(3, Buffer.from([byte]));
      },
    });
    expect(await run(server)).toEqual({ exitCode: 0 });
  });

  it('takes CLOSE messages of the server for what they are: the end of one channel', async () => {
    const server = await serve({
      script: async (session) => {
        await session.send(1, 'out');
        for (const channel of [0, 1, 2]) await session.send(255, Buffer.from([channel]));
        await session.exit(0);
      },
    });
    const stdout = new Collector();
    expect(await run(server, { stdout })).toEqual({ exitCode: 0 });
    expect(stdout.bytes.toString()).toBe('out');
  });
});

describe('backpressure', () => {
  it('stops reading while a sink has not caught up', async () => {
    const total = 64 * 1024 * 1024;
    const server = await serve({
      script: async (session) => {
        for (let sent = 0; sent < total; sent += 64 * 1024) await session.send(1, Buffer.alloc(64 * 1024));
        await session.exit(0);
      },
    });
    let taken = 0;
    const opened = Promise.withResolvers<void>();
    const stdout = {
      write: (chunk: Uint8Array) => {
        taken += chunk.length;
        return opened.promise;
      },
    };
    const running = run(server, { stdout });
    await sleep(500);
    // The kernel's buffers hold some MiB; the rest of the 64 MiB must still be on the server's side.
    expect(taken).toBeLessThan(1024 * 1024);
    expect(server.sessions[0]!.socket.bufferedAmount).toBeGreaterThan(0);
    opened.resolve();
    expect(await running).toEqual({ exitCode: 0 });
    expect(taken).toBe(total);
  });

  it('asks the source for no more than the network takes', async () => {
    const looked = Promise.withResolvers<void>();
    const server = await serve({
      script: async (session) => {
        session.socket.pause();
        await looked.promise;
        session.socket.resume();
        await session.stdin();
        await session.exit(0);
      },
    });
    let asked = 0;
    async function* source() {
      for (let i = 0; i < 512; i++) {
        asked += 128 * 1024;
        yield Buffer.alloc(128 * 1024);
      }
    }
    const running = run(server, { stdin: source() });
    let askedWhilePaused = -1;
    while (asked === 0 || asked !== askedWhilePaused) {
      askedWhilePaused = asked;
      await sleep(200);
    }
    looked.resolve();
    expect(await running).toEqual({ exitCode: 0 });
    expect(askedWhilePaused).toBeLessThan(16 * 1024 * 1024);
    expect(asked).toBe(64 * 1024 * 1024);
  });
});

describe('a command that ends before it has read its input', () => {
  it('settles with its exit code, and the source is told', async () => {
    const server = await serve({
      script: async (session) => {
        while (session.stdinBytes() < 1_000_000) await sleep(1);
        await session.exit(4);
        session.hangUp();
      },
    });
    let returned = false;
    async function* endless() {
      try {
        for (;;) yield Buffer.alloc(64 * 1024);
      } finally {
        returned = true;
      }
    }
    expect(await run(server, { stdin: endless() })).toEqual({ exitCode: 4 });
    await sleep(20);
    expect(returned).toBe(true);
  });

  it('does not wait for a source that has nothing to give', async () => {
    const server = await serve({ script: (session) => session.exit(0) });
    const silent: AsyncIterable<Uint8Array> = {
      [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => undefined) }),
    };
    expect(await run(server, { stdin: silent })).toEqual({ exitCode: 0 });
  });

  it('stops sending when the server closes stdin', async () => {
    const server = await serve({
      script: async (session) => {
        await session.send(255, Buffer.from([0]));
        await sleep(100);
        const before = session.stdinBytes();
        await sleep(100);
        await session.exit(session.stdinBytes() === before ? 0 : 9);
      },
    });
    async function* endless() {
      for (;;) {
        yield Buffer.alloc(1024);
        await sleep(1);
      }
    }
    expect(await run(server, { stdin: endless() })).toEqual({ exitCode: 0 });
  });
});

describe('an upgrade that is refused', () => {
  const status = (code: number, reason: string, message: string) =>
    JSON.stringify({ kind: 'Status', status: 'Failure', code, reason, message });

  it.each([
    [404, 'NotFound', 'pods "one" not found', 'NotFound'],
    [403, 'Forbidden', 'pods "one" is forbidden: User "x" cannot get resource "pods/exec"', 'Forbidden'],
    [401, 'Unauthorized', 'Unauthorized', 'Forbidden'],
    [400, 'BadRequest', 'container nope is not valid for pod one', 'NotFound'],
    [
      500,
      'InternalError',
      'cannot exec into a container in a completed pod; current phase is Succeeded',
      'NotRunning',
    ],
    [
      500,
      'InternalError',
      'failed to exec in container: failed to create exec "05": cannot exec in a deleted state: unknown',
      'NotRunning',
    ],
    [503, 'ServiceUnavailable', 'try again', 'Refused'],
  ])('%i %s: %s becomes %s', async (code, reason, message, expected) => {
    const server = await serve({ refuse: { status: code, body: status(code, reason, message) } });
    const error = await failure(run(server));
    expect(error).toMatchObject({ reason: expected, status: code, maybeStarted: false });
    expect(error.message).toBe(`exec in sandboxes/one/sandbox: ${message}`);
  });

  it('by a proxy with a page of HTML is told with its status', async () => {
    const server = await serve({ refuse: { status: 502, body: '<html>Bad gateway</html>' } });
    const error = await failure(run(server));
    expect(error).toMatchObject({ reason: 'Refused', status: 502, retryable: true });
    expect(error.message).toContain('HTTP 502');
  });

  it('by 403 without a word names the protocol that is missing', async () => {
    const server = await serve({ refuse: { status: 403, body: '' } });
    const error = await failure(run(server));
    expect(error.reason).toBe('Protocol');
    expect(error.message).toContain('v5.channel.k8s.io');
  });

  it('with a body that never ends settles all the same', async () => {
    const server = await serve({ refuse: { status: 404, body: '{', hang: true } });
    expect(await failure(run(server, { timing: { openMs: 200 } }))).toMatchObject({
      reason: 'NotFound',
      status: 404,
    });
  });

  it.each([['v4.channel.k8s.io'], [false]] as const)(
    'by offering only %s is a clear error',
    async (protocol) => {
      const server = await serve({ protocol });
      const error = await failure(run(server));
      expect(error.reason).toBe('Protocol');
      expect(error.message).toContain('v5.channel.k8s.io (Kubernetes 1.30 or later)');
    },
  );

  it('by nobody listening is Unreachable', async () => {
    const server = await startExecServer({});
    await server.stop();
    expect(await failure(run(server))).toMatchObject({ reason: 'Unreachable', retryable: true });
  });

  it('by a listener that says nothing settles at the opening deadline', async () => {
    const mute = createServer(() => undefined);
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    const address = mute.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const connection = connectionTo(`http://127.0.0.1:${port}`);
    const error = await failure(exec(connection, { ...target, timing: { openMs: 100 } }));
    mute.close();
    expect(error.reason).toBe('Unreachable');
  });

  it('never shows the token in an error', async () => {
    const server = await serve({ refuse: { status: 403, body: status(403, 'Forbidden', 'no') } });
    const error = await failure(run(server));
    expect(`${error.stack} ${JSON.stringify(error)}`).not.toContain('secret');
  });
});

describe('a server that misbehaves', () => {
  it('and closes without a status is Disconnected: the command may still run', async () => {
    const server = await serve({ script: (session) => session.hangUp() });
    expect(await failure(run(server))).toMatchObject({ reason: 'Disconnected', maybeStarted: true });
  });

  it('and resets the connection is Disconnected, after the output that came', async () => {
    const server = await serve({
      script: async (session) => {
        await session.send(1, 'so far');
        session.socket.terminate();
      },
    });
    const stdout = new Collector();
    expect(await failure(run(server, { stdout }))).toMatchObject({ reason: 'Disconnected' });
    expect(stdout.bytes.toString()).toBe('so far');
  });

  it('and closes the status channel without a status is Disconnected', async () => {
    const server = await serve({ script: (session) => session.send(255, Buffer.from([3])) });
    expect(await failure(run(server))).toMatchObject({ reason: 'Disconnected' });
  });

  it.each([
    ['no JSON', '{"status":'],
    ['another object', '{"kind":"Pod"}'],
    ['a number', '7'],
    ['bytes that are no text', Buffer.from([0xff, 0xfe])],
  ])('and sends %s for a status is a Protocol error', async (_name, bytes) => {
    const server = await serve({ script: (session) => session.send(3, bytes) });
    const error = await failure(run(server, { timing: { statusMs: 50 } }));
    expect(error.reason).toBe('Protocol');
    expect(error.message).toContain('no Status object');
  });

  it('and sends an endless status is a Protocol error', async () => {
    const server = await serve({ script: (session) => session.send(3, Buffer.alloc(100_000, 'x')) });
    expect((await failure(run(server))).reason).toBe('Protocol');
  });

  it('and names an exit code that is no number is a Protocol error', async () => {
    const causes = [{ reason: 'ExitCode', message: 'seven' }];
    const server = await serve({
      script: (session) =>
        session.status({ status: 'Failure', reason: 'NonZeroExitCode', details: { causes } }),
    });
    expect((await failure(run(server))).message).toContain('"seven"');
  });

  it.each([
    ['on an unknown channel', Buffer.from([9, 1])],
    ['that closes nothing', Buffer.from([255])],
    ['that closes too much', Buffer.from([255, 1, 2])],
  ])('and sends a message %s is a Protocol error', async (_name, message) => {
    const server = await serve({ script: (session) => session.send(message[0]!, message.subarray(1)) });
    expect((await failure(run(server))).reason).toBe('Protocol');
  });

  it('and reports a failure of its own after the upgrade is Broken: the command may have run', async () => {
    const message = 'error reading from error stream: EOF';
    const server = await serve({
      script: (session) => session.status({ status: 'Failure', reason: 'InternalError', code: 500, message }),
    });
    expect(await failure(run(server))).toMatchObject({
      reason: 'Broken',
      maybeStarted: true,
      retryable: false,
    });
  });

  it('and tells that the runtime did not start the command is NotStarted', async () => {
    const message =
      'Internal error occurred: OCI runtime exec failed: "nope": executable file not found in $PATH';
    const server = await serve({
      script: (session) => session.status({ status: 'Failure', reason: 'InternalError', code: 500, message }),
    });
    expect(await failure(run(server))).toMatchObject({ reason: 'NotStarted', maybeStarted: false });
  });
});

describe('liveness', () => {
  const timing = { pingMs: 50, pongMs: 150, stalledMs: 1_000 };

  it('gives up on a server that stops answering', async () => {
    const server = await serve({ answerPings: false });
    expect(await failure(run(server, { timing }))).toMatchObject({
      reason: 'Unresponsive',
      maybeStarted: true,
    });
  });

  it('waits as long as it takes for a server that answers pings', async () => {
    const server = await serve({
      script: async (session) => {
        await sleep(700);
        await session.exit(0);
      },
    });
    expect(await run(server, { timing })).toEqual({ exitCode: 0 });
  });

  it('does not take a command that is slow to read its input for a dead server', async () => {
    const server = await serve({
      script: async (session) => {
        // As the API server: nothing on this connection is read, no ping either, until the command reads.
        session.socket.pause();
        await sleep(600);
        session.socket.resume();
        await session.stdin();
        await session.exit(0);
      },
    });
    expect(await run(server, { timing, stdin: chunksOf(3_000_000, 100_000) })).toEqual({ exitCode: 0 });
  });

  it('gives up on a server that takes input and stops answering, later', async () => {
    const server = await serve({ script: (session) => session.socket.pause() });
    const error = await failure(run(server, { timing, stdin: chunksOf(3_000_000, 100_000) }));
    expect(error.reason).toBe('Unresponsive');
  });

  it('does not blame the server while our own sink is slow', async () => {
    const server = await serve({
      answerPings: false,
      script: async (session) => {
        await session.send(1, 'x');
        await session.exit(0);
      },
    });
    expect(await run(server, { timing, stdout: { write: () => sleep(700) } })).toEqual({ exitCode: 0 });
  });
});

describe('the caller', () => {
  it('aborts and gets its own reason, and the server sees the end', async () => {
    const server = await serve({});
    const controller = new AbortController();
    const running = run(server, { signal: controller.signal });
    while (server.sessions.length === 0) await sleep(1);
    await sleep(20);
    controller.abort(new Error('enough'));
    await expect(running).rejects.toThrow('enough');
    await server.sessions[0]!.gone;
  });

  it('aborts while its own sink hangs, and it settles', async () => {
    const server = await serve({ script: (session) => session.send(1, 'x') });
    const controller = new AbortController();
    const stdout = {
      write: () => new Promise<void>(() => setTimeout(() => controller.abort(new Error('enough')), 20)),
    };
    await expect(run(server, { stdout, signal: controller.signal })).rejects.toThrow('enough');
  });

  it('aborts before or while the connection opens', async () => {
    const server = await serve({});
    await expect(run(server, { signal: AbortSignal.abort(new Error('never')) })).rejects.toThrow('never');
    const controller = new AbortController();
    const running = run(server, { signal: controller.signal });
    controller.abort(new Error('early'));
    await expect(running).rejects.toThrow('early');
  });

  it.each(['throws', 'rejects'])('whose sink %s gets the error as a cause', async (how) => {
    const server = await serve({ script: (session) => session.send(1, 'x') });
    const cause = new Error('disk full');
    const write = () => {
      if (how === 'throws') throw cause;
      return Promise.reject(cause);
    };
    expect(await failure(run(server, { stdout: { write } }))).toMatchObject({ reason: 'SinkFailed', cause });
  });

  it('whose source throws gets the error as a cause, and the server no end of input', async () => {
    const server = await serve({});
    const cause = new Error('source broke');
    async function* source() {
      yield Buffer.from('some');
      throw cause;
    }
    expect(await failure(run(server, { stdin: source() }))).toMatchObject({ reason: 'StdinFailed', cause });
    const ended = await Promise.race([
      server.sessions[0]!.stdin().then(() => 'closed'),
      sleep(50).then(() => 'open'),
    ]);
    expect(ended).toBe('open');
  });
});

import { afterEach, describe, expect, it } from 'vitest';
import { type ExecServer, type ExecServerOptions, startExecServer } from '../../../test/fakes/exec-server.ts';
import type { ResourceKind } from '../../crds/meta.ts';
import { type Clock, systemClock } from '../../kube/clock.ts';
import { execConnection } from '../../kube/exec-connection.ts';
import type { Pod } from '../../kube/kinds.ts';
import { KILL_SCRIPT } from '../command/kill-script.ts';
import { SandboxLostError } from '../port.ts';
import { PodCommands } from './commands.ts';

const servers: ExecServer[] = [];
afterEach(async () => {
  const violations = servers.flatMap((server) => server.violations);
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  expect(violations).toEqual([]);
});

const RUNNING: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'box', uid: 'u1' },
  spec: { containers: [{ name: 'sandbox' }] },
  status: {
    phase: 'Running',
    containerStatuses: [{ name: 'sandbox', ready: true, restartCount: 0, state: { running: {} } }],
  },
};
const DELETED: Pod = {
  ...RUNNING,
  metadata: { ...RUNNING.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
};

/** Grace and pauses of some seconds are cut short; what bounds a request is not. */
const impatient: Clock = {
  ...systemClock,
  after: (ms, action) => systemClock.after(ms >= 1_000 && ms <= 5_000 ? 20 : ms, action),
};

async function commandsOn(options: ExecServerOptions, pod: Pod | undefined = RUNNING) {
  const server = await startExecServer(options);
  servers.push(server);
  const connection = execConnection({
    server: new URL(server.url),
    credentials: async () => ({ headers: {}, tls: {} }),
  });
  // The only object that is read is this pod, so its type is the kind's.
  const client = { get: async <T>(_kind: ResourceKind) => pod as T | undefined };
  const commands = new PodCommands({
    ...{ connection, client, namespace: 'sandboxes', pod: 'box', uid: 'u1', container: 'sandbox' },
    clock: impatient,
    newId: () => 'end-mark',
  });
  const kills = () =>
    server.sessions.filter(({ query }) => isKill(query)).map(({ query }) => query.getAll('command'));
  return { server, commands, kills };
}

const isKill = (query: URLSearchParams) => query.getAll('command')[2] === KILL_SCRIPT;
const status = (code: number) => JSON.stringify({ status: 'Failure', code, message: 'm' });

describe('a command in a pod', () => {
  it('is tried again when it surely did not begin, with all of its input', async () => {
    let received = '';
    const { commands } = await commandsOn({
      refuse: { status: 503, body: status(503), times: 2 },
      script: async (session) => {
        received = (await session.stdin()).toString();
        await session.exit(0);
      },
    });
    async function* stdin() {
      yield Buffer.from('once');
    }
    expect(await commands.run('id', ['cat'], { stdin: stdin() })).toEqual({ kind: 'Exited', exitCode: 0 });
    expect(received).toBe('once');
  });

  it('is not tried again when it is forbidden', async () => {
    const { commands } = await commandsOn({
      refuse: { status: 403, body: status(403), times: 1 },
      script: (s) => s.exit(0),
    });
    await expect(commands.run('id', ['true'], {})).rejects.toMatchObject({ reason: 'Forbidden' });
  });

  it('whose connection is lost is killed, and not tried again', async () => {
    const { commands, server, kills } = await commandsOn({
      script: (session) => (isKill(session.query) ? session.exit(0) : session.hangUp()),
    });
    await expect(commands.run('the-id', ['true'], {})).rejects.toMatchObject({ reason: 'Disconnected' });
    expect(server.sessions).toHaveLength(2);
    expect(kills().map((words) => words.slice(4, 6))).toEqual([['the-id', 'KILL']]);
  });

  it.each([
    ['that is gone', 404],
    ['that is gone', 400],
  ])('in a pod %s (%i) is lost', async (_what, code) => {
    const message = code === 400 ? 'pod box does not have a host assigned' : 'pods "box" not found';
    const { commands } = await commandsOn({
      refuse: { status: code, body: JSON.stringify({ status: 'Failure', code, message }) },
    });
    await expect(commands.run('id', ['true'], {})).rejects.toBeInstanceOf(SandboxLostError);
  });

  it('that was killed together with its pod is lost, not ended with 137', async () => {
    const { commands } = await commandsOn({ script: (session) => session.exit(137) }, DELETED);
    await expect(commands.run('id', ['true'], {})).rejects.toThrow(
      /sandboxes\/box is gone: the pod is being deleted/,
    );
  });

  it('that was killed alone ended with 137', async () => {
    const { commands } = await commandsOn({ script: (session) => session.exit(137) });
    expect(await commands.run('id', ['true'], {})).toEqual({ kind: 'Exited', exitCode: 137 });
  });

  it('whose exec never ends, though it was killed, has timed out', async () => {
    const { commands, kills } = await commandsOn({
      script: (session) => (isKill(session.query) ? session.exit(0) : undefined),
    });
    expect(await commands.run('id', ['true'], { timeoutMs: 50 })).toEqual({ kind: 'TimedOut' });
    expect(kills().map((words) => words[5])).toEqual(['TERM', 'KILL', 'KILL']);
  });

  it('that cannot be killed makes the sandbox a lost one', async () => {
    const { commands } = await commandsOn({
      script: (session) => (isKill(session.query) ? session.exit(1) : undefined),
    });
    await expect(commands.run('id', ['true'], { timeoutMs: 50 })).rejects.toThrow(/box is given up/);
  });

  it('that the runtime cannot start makes it one when it starts no other either', async () => {
    const status = {
      status: 'Failure',
      reason: 'InternalError',
      message: 'error executing command in container: OCI runtime exec failed: fork: resource unavailable',
    };
    const { commands, server } = await commandsOn({ script: (session) => session.status(status) });
    await expect(commands.run('id', ['true'], {})).rejects.toBeInstanceOf(SandboxLostError);
    expect(server.sessions.length).toBeGreaterThan(2);
  });

  it('gives the rest of its output when it is killed at its time', async () => {
    let killed = () => {};
    const { commands } = await commandsOn({
      script: async (session) => {
        if (isKill(session.query)) {
          killed();
          return await session.exit(0);
        }
        await new Promise<void>((resolve) => {
          killed = resolve;
        });
        await session.send(1, 'rest');
        await session.exit(137);
      },
    });
    let text = '';
    const stdout = {
      write: (chunk: Uint8Array) => {
        text += Buffer.from(chunk).toString();
      },
    };
    expect(await commands.run('id', ['true'], { timeoutMs: 50, stdout })).toEqual({ kind: 'TimedOut' });
    expect(text).toBe('rest');
  });
});

import { randomBytes } from 'node:crypto';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reapOnce } from '../../src/controllers/pool/reap.ts';
import type { ResourceKind } from '../../src/crds/meta.ts';
import { NETWORK_POLICY, SECRET } from '../../src/kube/kinds.ts';
import { VIRTUAL_MACHINE_INSTANCE } from '../../src/kube/kubevirt/kinds.ts';
import { type ExecResult, SandboxLostError, SandboxUnavailableError } from '../../src/sandbox/port.ts';
import { type MachineWorld, machineWorld } from '../builders/machines.ts';
import { until } from '../builders/pool.ts';
import type { Faults } from '../fakes/kubevirt/stand-in.ts';

/** What goes wrong with a machine, by the beginning of its name. */
const FAULTS: Readonly<Record<string, Faults>> = {
  'late-': { address: { lateMs: 2_500 }, sshd: { lateMs: 4_000 } },
  'nowhere-': { address: 'never' },
  'silent-': { sshd: 'never' },
  'stranger-': { keys: 'none' },
  'failed-': { phase: 'Failed' },
};

let world: MachineWorld;
let env: Readonly<Record<string, string | undefined>>;
beforeAll(async () => {
  world = await machineWorld(
    ({ metadata }) => Object.entries(FAULTS).find(([prefix]) => metadata.name?.startsWith(prefix))?.[1] ?? {},
  );
  env = await withSpy(world.tempDir);
});
afterAll(() => world?.close());

/** An ssh that writes down what it is called with, and then is the real one. */
async function withSpy(folder: string): Promise<typeof env> {
  const script = `#!/bin/sh\nprintf '%s\\n' "$*" >>'${folder}/calls'\nexec /usr/bin/ssh "$@"\n`;
  await writeFile(join(folder, 'ssh'), script);
  await chmod(join(folder, 'ssh'), 0o755);
  return { ...process.env, PATH: `${folder}:${process.env['PATH']}`, SSH_AUTH_SOCK: '/nowhere' };
}

/** Where ssh was called to, for machines whose uid the calls name. */
async function callsOf(uid: string): Promise<readonly string[]> {
  const calls = (await readFile(join(world.tempDir, 'calls'), 'utf8').catch(() => '')).split('\n');
  return calls.filter((call) => call.includes(`HostKeyAlias=${uid}`));
}

const SLEEPERS = 'pgrep -x sleep | wc -l';
const text = (result: ExecResult) => Buffer.from(result.stdout).toString();
const refOf = (name: string) => ({ namespace: world.namespaces.sandboxes, name });
const leftOf = async (name: string) => {
  const kinds: readonly ResourceKind[] = [VIRTUAL_MACHINE_INSTANCE, SECRET, NETWORK_POLICY];
  const found = await Promise.all(kinds.map((kind) => world.kube.get(kind, refOf(name))));
  return found.flatMap((object) => (object === undefined ? [] : [object.kind]));
};
const failure = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('a machine that is slow', () => {
  it('BR-41: has no address at first, then no sshd: it is waited for, and nobody is called meanwhile', async () => {
    const sandbox = await world.own({ env, name: `late-${randomBytes(3).toString('hex')}` });
    const machine = await world.kube.get(VIRTUAL_MACHINE_INSTANCE, refOf(sandbox.ref.name));
    const { address } = world.kubevirt.machine(sandbox.ref.name);
    const calls = await callsOf(machine?.metadata.uid ?? '');
    expect(calls.length).toBeGreaterThan(0);
    for (const call of calls) expect(call).toContain(` -- ${address} `);
    expect(text(await sandbox.exec('id -un; pwd'))).toBe('sandbox\n/tmp\n');
    await sandbox.cleanup();
  });

  it.each<[string, string, string, typeof SandboxUnavailableError | typeof SandboxLostError]>([
    ['BR-41: never has an address', 'nowhere', 'no address after 4 s', SandboxUnavailableError],
    ['never has an sshd', 'silent', 'refused', SandboxUnavailableError],
    ['lets nobody in', 'stranger', 'Permission denied', SandboxUnavailableError],
    ['fails', 'failed', 'has ended: Failed', SandboxLostError],
  ])('%s: the start fails with the reason, and nothing is left', async (_name, prefix, why, kind) => {
    const name = `${prefix}-${randomBytes(3).toString('hex')}`;
    const error = await failure(
      world.own({ env, name, machineTimeoutMs: prefix === 'nowhere' ? 4_000 : 60_000, sshTimeoutMs: 3_000 }),
    );
    expect(error).toBeInstanceOf(kind);
    expect(String(error)).toContain(why);
    if (prefix === 'nowhere' || prefix === 'failed')
      expect(await readFile(join(world.tempDir, 'calls'), 'utf8').catch(() => '')).not.toContain(name);
    await until('all of it is gone', async () => (await leftOf(name)).length === 0);
    expect((await world.leftFiles()).filter((file) => file.includes('key'))).toEqual([]);
  });

  it('is given up when the caller gives up, and nothing is left', async () => {
    const name = `silent-${randomBytes(3).toString('hex')}`;
    const signal = AbortSignal.timeout(3_000);
    expect(await failure(world.own({ env, name }, signal))).toBe(signal.reason);
    await until('all of it is gone', async () => (await leftOf(name)).length === 0);
  });
});

describe('a machine in use', () => {
  it('keeps no private key: neither in a file, nor in the cluster, nor in the machine', async () => {
    const sandbox = await world.own();
    expect((await world.leftFiles()).filter((file) => /(^|\/)key$/.test(file))).toEqual([]);
    const secret = await world.kube.get(SECRET, refOf(sandbox.ref.name));
    expect(Buffer.from(secret?.data?.['authorized_keys'] ?? '', 'base64').toString()).toMatch(
      /^ssh-ed25519 \S+\n$/,
    );
    const found = await sandbox.exec('grep -rl "OPENSSH PRIVATE KEY" /home /tmp 2>/dev/null; env');
    expect(text(found)).not.toMatch(/PRIVATE KEY|\/tmp\/|\/home\/sandbox\/|SSH_AUTH_SOCK/);
    await sandbox.cleanup();
  });

  it('runs more commands at once than a connection has sessions', async () => {
    const sandbox = await world.own();
    const all = Array.from({ length: 24 }, (_, at) => sandbox.exec(`sleep 0.2; echo ${at}`));
    expect((await Promise.all(all)).map(text)).toEqual(all.map((_, at) => `${at}\n`));
    await sandbox.cleanup();
  });

  it('whose sshd was restarted goes on with the next command; the one that ran has failed', async () => {
    const sandbox = await world.own();
    const machine = world.kubevirt.machine(sandbox.ref.name);
    const running = failure(sandbox.exec('sleep 60'));
    await until('it runs', async () => text(await sandbox.exec(SLEEPERS)).trim() === '1');
    await machine.stopSshd();
    await machine.startSshd();
    const error = await running;
    expect(error).toBeInstanceOf(Error);
    expect(error).not.toBeInstanceOf(SandboxLostError);
    expect(String(error)).toContain('broke while the command ran');
    // What the lost command had left is gone too.
    expect(text(await sandbox.exec(SLEEPERS)).trim()).toBe('0');
    await sandbox.cleanup();
  });

  it.each([
    ['has another host key', {}, 'another host key'],
    ['has the same host key and has been started again', { keepHostKey: true }, 'has been started'],
  ])('that comes back and %s is lost', async (_name, options, why) => {
    const sandbox = await world.own();
    await world.kubevirt.machine(sandbox.ref.name).replace(options);
    const error = await failure(sandbox.exec('true'));
    expect(error).toBeInstanceOf(SandboxLostError);
    expect(String(error)).toContain(why);
  });

  it('whose address another machine has now is lost, and the other one gets no command', async () => {
    const [one, other] = await Promise.all([world.own(), world.own()]);
    await world.kubevirt.reuseAddress(one.ref.name, other.ref.name);
    const error = await failure(one.exec('touch /tmp/wrong'));
    expect(error).toBeInstanceOf(SandboxLostError);
    const { log } = world.kubevirt.machine(other.ref.name);
    expect(await log()).not.toContain('Starting session');
    await other.cleanup();
  });

  it('that nobody deletes is reaped at its deadline, and no other', async () => {
    const [late, other] = await Promise.all([world.own({ reapBy: new Date() }), world.own()]);
    const { kube, events } = world;
    const pass = () => reapOnce({ kube, events, namespaces: [world.namespaces.sandboxes] });
    await until('it is reaped', async () => (await pass()).includes(late.ref.name));
    await until('all of it is gone', async () => (await leftOf(late.ref.name)).length === 0, 90_000);
    expect(text(await other.exec('echo here'))).toBe('here\n');
    await other.cleanup();
  });

  it('that is evicted is lost, with the reason', async () => {
    const sandbox = await world.own();
    const running = failure(sandbox.exec('sleep 60'));
    await sleep(300);
    await world.kubevirt.evict(sandbox.ref.name);
    expect(String(await running)).toMatch(/SandboxLostError: .*has ended: Failed, Evicted/);
  });
});

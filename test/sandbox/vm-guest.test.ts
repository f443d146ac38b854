import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ANNOTATIONS } from '../../src/crds/meta.ts';
import { SECRET } from '../../src/kube/kinds.ts';
import { VIRTUAL_MACHINE_INSTANCE } from '../../src/kube/kubevirt/kinds.ts';
import { type ExecResult, type Sandbox, SandboxLostError, SCRATCH } from '../../src/sandbox/port.ts';
import { type MachineWorld, machineWorld } from '../builders/machines.ts';
import { bootGuest, type Guest } from '../fakes/kubevirt/guest.ts';
import { HOST_ADDRESS } from '../fakes/kubevirt/network.ts';

/** A boot without hardware support takes some 10 s of a processor that is free. */
const BOOT_MS = 300_000;
const WAIT = { timeout: 60_000, interval: 500 };
const EIGHT_MB = 8 * 1024 * 1024;

const text = ({ stdout }: ExecResult) => Buffer.from(stdout).toString();
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

async function* inChunks(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  for (let offset = 0; offset < bytes.length; offset += 65_536) yield bytes.subarray(offset, offset + 65_536);
}

/** In order: one guest serves all of them, since its boot is what takes time. */
describe('a machine with a kernel of its own', { timeout: BOOT_MS }, () => {
  let world: MachineWorld;
  let guest: Guest;
  let sandbox: Sandbox;
  beforeAll(async () => {
    world = await machineWorld(undefined, async (wish) => {
      guest = await bootGuest(wish);
      return guest;
    });
    sandbox = await world.own({ sshTimeoutMs: BOOT_MS, machineTimeoutMs: BOOT_MS });
  }, 2 * BOOT_MS);
  afterAll(async () => {
    await sandbox?.cleanup();
    await world?.close();
  });

  /** How many processes match: busybox has no pgrep, and its `sleep` may run in the shell that was told to. */
  const living = async (pattern: string) => {
    const all = `for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done 2>/dev/null`;
    return text(await sandbox.exec(`${all} | grep -c '${pattern}'`)).trim();
  };
  const refOf = () => ({ namespace: world.namespaces.sandboxes, name: sandbox.ref.name });

  it('is ready when a command has succeeded, long after its address takes connections', async () => {
    const booted = /guest: booted in (\d+\.\d+) s/.exec(await guest.console());
    expect(booted).not.toBeNull();
    const kernel = text(await sandbox.exec('uname -r; id -un; pwd')).split('\n');
    expect(kernel.slice(0, 3)).toEqual([
      expect.stringMatching(/cloud-amd64$/),
      'sandbox',
      SCRATCH.slice(0, 4),
    ]);
    // The host's kernel is another one, and so is its boot.
    const own = await world.kube.get(VIRTUAL_MACHINE_INSTANCE, refOf());
    const pinned = own?.metadata.annotations ?? {};
    expect(pinned[ANNOTATIONS.bootId]).toBe(
      text(await sandbox.exec('cat /proc/sys/kernel/random/boot_id')).trim(),
    );
    expect(pinned[ANNOTATIONS.hostKey]).toMatch(/^ssh-ed25519 /);
  });

  it('runs commands and says how they ended', async () => {
    const result = await sandbox.exec('echo out; echo err >&2; exit 7');
    expect(result).toMatchObject({ kind: 'Exited', exitCode: 7, stdoutBytes: 4, stderrBytes: 4 });
  });

  it('keeps files as they are', async () => {
    const bytes = randomBytes(300_000);
    await sandbox.writeFile(`${SCRATCH}/file`, bytes);
    const chunks: Uint8Array[] = [];
    for await (const chunk of sandbox.readFile(`${SCRATCH}/file`)) chunks.push(chunk);
    expect(sha256(Buffer.concat(chunks))).toBe(sha256(bytes));
  });

  it('takes 8 MB into a command, and gives 8 MB out of a file (BR-32)', async () => {
    const bytes = randomBytes(EIGHT_MB);
    const fed = await sandbox.streamExec(`tee ${SCRATCH}/eight | sha256sum`, inChunks(bytes));
    expect(text(fed)).toContain(sha256(bytes));
    const hash = createHash('sha256');
    let size = 0;
    for await (const chunk of sandbox.readFile(`${SCRATCH}/eight`)) {
      hash.update(chunk);
      size += chunk.length;
    }
    expect([size, hash.digest('hex')]).toEqual([EIGHT_MB, sha256(bytes)]);
  });

  it('kills a command at its time with the daemon that it left (BR-34)', async () => {
    const command = `setsid sh -c "trap '' TERM HUP; sleep 71.1; sleep 71.1" & echo begun; sleep 71.2`;
    const running = sandbox.exec(command, { timeoutMs: 15_000 });
    await expect.poll(() => living('[s]leep 71[.]1'), WAIT).not.toBe('0');
    const result = await running;
    expect([result.kind, text(result)]).toEqual(['TimedOut', 'begun\n']);
    expect(await living('[s]leep 71[.]')).toBe('0');
  });

  it('has no way out, not even to the machine that it is on', async () => {
    let met = 0;
    const listener = createServer((socket) => {
      met += 1;
      socket.destroy();
    });
    await once(listener.listen(0, HOST_ADDRESS), 'listening');
    const { port } = listener.address() as AddressInfo; // of TCP
    await once(connect(port, HOST_ADDRESS), 'close');
    const tried = await sandbox.exec(`nc -w 5 ${HOST_ADDRESS} ${port} </dev/null`, { timeoutMs: 60_000 });
    listener.close();
    expect([met, tried.kind === 'Exited' && tried.exitCode !== 0]).toEqual([1, true]);
  });

  it('whose hypervisor ends while a command runs is lost, and leaves nothing', async () => {
    const running = sandbox.exec('sleep 600').then(
      () => undefined,
      (error: unknown) => error,
    );
    await expect.poll(() => living('[s]leep 600'), WAIT).not.toBe('0');
    await guest.kill();
    expect(await running).toBeInstanceOf(SandboxLostError);
    await expect(sandbox.exec('true')).rejects.toBeInstanceOf(SandboxLostError);
    await sandbox.cleanup();
    const gone = async () =>
      (await world.kube.get(VIRTUAL_MACHINE_INSTANCE, refOf())) ?? (await world.kube.get(SECRET, refOf()));
    await expect.poll(gone, WAIT).toBeUndefined();
    expect((await world.leftFiles()).filter((file) => file.includes('key'))).toEqual([]);
  });
});

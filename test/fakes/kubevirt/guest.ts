import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { waitUntil } from '../../../hack/cluster/api.ts';
import { toolPath } from '../../../hack/cluster/run.ts';
import { writeTar } from '../../../hack/cluster/tar.ts';
import { ensureGuestImage } from '../../../hack/guest/image.ts';
import { GUEST_ADDRESS } from '../../../hack/guest/rootfs.ts';
import type { Booted, MachineWish } from './machine.ts';
import { HOST_ADDRESS, plugIn, unplug } from './network.ts';

export interface Guest extends Booted {
  /** What the guest's kernel and its first process have said. */
  console(): Promise<string>;
}

/**
 * A real guest: QEMU without hardware support, a kernel of its own, and an sshd that has made its host key itself.
 * Resolves when QEMU runs: the guest boots afterwards, while the connections that it cannot take yet are held. Its
 * network is QEMU's own behind one port, in a network namespace that only answers leave. Needs root.
 */
export async function bootGuest({ keys, address: wanted }: MachineWish): Promise<Guest> {
  const { kernel, initrd } = await ensureGuestImage((line) => console.error(`guest: ${line}`));
  const folder = await mkdtemp(join(tmpdir(), 'guest-'));
  writeTar(join(folder, 'keys'), [
    { kind: 'file', name: 'authorized_keys', mode: 0o600, content: Buffer.from(keys) },
  ]);
  const link = `hv-${randomBytes(4).toString('hex')}`;
  const child = spawn('unshare', [...NAMESPACES, '--', '/bin/sh', '-c', RUN, 'run', folder, kernel, initrd], {
    // The guest ends with its standard input: it never outlives the process that made it.
    stdio: ['pipe', 'ignore', 'pipe'],
    env: { PATH: toolPath() },
    cwd: folder,
  });
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaint += chunk.toString();
  });
  child.stdin.on('error', () => undefined);
  const ended = once(child, 'exit').then(() => undefined);
  const running = () => child.exitCode === null && child.signalCode === null;
  const kill = async (): Promise<void> => {
    child.stdin.end();
    await ended;
    await unplug(link);
    await rm(folder, { recursive: true, force: true });
  };
  const exists = (file: string) =>
    readFile(join(folder, file)).then(
      () => true,
      () => false,
    );
  const waitFor = (file: string) =>
    waitUntil(
      async () => {
        if (!running()) throw new Error(`the guest ended at once: ${complaint}`);
        return exists(file);
      },
      60_000,
      () => `the guest is not ${file} after 60 s: ${complaint}`,
    );
  try {
    await waitFor('unshared');
    const address = await plugIn(child.pid ?? 0, link, wanted);
    await writeFile(join(folder, 'address'), `${address}\n`);
    await waitFor('console');
    return { address, ended, kill, console: () => readFile(join(folder, 'console'), 'utf8') };
  } catch (error) {
    await kill();
    throw error;
  }
}

const NAMESPACES = ['--mount', '--net', '--pid', '--fork', '--kill-child', '--propagation', 'private'];

/** $1: folder with the keys, $2: kernel, $3: root file system. Ends with its input, or with QEMU. */
const RUN = `
set -e
: >"$1/unshared"
while [ ! -s "$1/address" ]; do sleep 0.02; done
read -r address <"$1/address"
for which in all default; do echo 1 >/proc/sys/net/ipv6/conf/$which/disable_ipv6; done
ip link set lo up
ip link set eth0 up
ip addr add "$address/32" dev eth0
ip route add ${HOST_ADDRESS}/32 dev eth0
iptables -w -A OUTPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
iptables -w -P OUTPUT DROP
exec 3<&0
qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \\
  -accel tcg -cpu max -smp 1 -m 256 \\
  -kernel "$2" -initrd "$3" -serial "file:$1/console" \\
  -append 'console=ttyS0 quiet panic=-1 mitigations=off nokaslr audit=0 apparmor=0 random.trust_cpu=on' \\
  -drive "if=none,id=keys,format=raw,readonly=on,file=$1/keys" -device virtio-blk-pci,drive=keys,serial=ssh-pubkeys \\
  -netdev "user,id=net,restrict=on,ipv6=off,hostfwd=tcp:$address:22-${GUEST_ADDRESS}:22" \\
  -device virtio-net-pci,netdev=net,romfile= </dev/null &
qemu=$!
(cat <&3 >/dev/null; kill -KILL $qemu) &
wait $qemu
`;

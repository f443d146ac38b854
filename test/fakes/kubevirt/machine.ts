import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { waitUntil } from '../../../hack/cluster/api.ts';
import { installMissing } from '../../../hack/cluster/packages.ts';
import { run, toolPath } from '../../../hack/cluster/run.ts';
import { HOST_ADDRESS, plugIn, unplug } from './network.ts';

/** What stands for the guest of a VirtualMachineInstance. */
export interface Booted {
  readonly address: string;
  /** Resolves when it has ended, for whatever reason; left out by one that only ends by `kill`. */
  readonly ended?: Promise<void>;
  /** Ends every process of the machine; its address is free afterwards. */
  kill(): Promise<void>;
}

/** A real sshd in namespaces of its own, with the unprivileged user `sandbox`. */
export interface Machine extends Booted {
  /** Starts the sshd that was held back, or does nothing. */
  startSshd(): Promise<void>;
  /** Ends the sshd and every connection; nobody listens afterwards. */
  stopSshd(): Promise<void>;
  /** As after another boot: other boot id, same address, and another host key unless the image brings it. */
  replace(options?: { readonly keepHostKey?: boolean }): Promise<void>;
  log(): Promise<string>;
}

export interface MachineWish {
  readonly name: string;
  /** Lines of `authorized_keys`. */
  readonly keys: string;
  /** Default: any that is free. */
  readonly address?: string;
}

/** Debian's names; the image of a real machine brings its own. */
const needs = [
  { anyOf: ['sshd'], package: 'openssh-server' },
  { anyOf: ['ssh'], package: 'openssh-client' },
  { anyOf: ['ip'], package: 'iproute2' },
  { anyOf: ['iptables'], package: 'iptables' },
  { anyOf: ['unshare'], package: 'util-linux' },
];

export async function ensureMachinePackages(): Promise<void> {
  await installMissing(needs, (line) => console.error(`machines: ${line}`));
}

/** Booted, with its address; its sshd is started by `startSshd`. Needs root. */
export async function bootMachine({ name, keys, address: wanted }: MachineWish): Promise<Machine> {
  const folder = await mkdtemp(join(tmpdir(), 'machine-'));
  // The user in the machine reads its keys there.
  await chmod(folder, 0o755);
  await writeParts(folder, keys);
  const link = `hv-${randomBytes(4).toString('hex')}`;
  const child = spawn('unshare', [...NAMESPACES, '--', '/bin/sh', '-c', INIT, 'init', folder, name], {
    // The machine ends with its standard input: it never outlives the process that made it.
    stdio: ['pipe', 'ignore', 'pipe'],
    env: { PATH: toolPath() },
  });
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaint += chunk.toString();
  });
  child.stdin.on('error', () => undefined);
  const exited = once(child, 'exit');
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await exited;
    await unplug(link);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const pid = child.pid ?? 0;
    await waitForFile(folder, 'unshared', child, () => complaint);
    const address = await plugIn(pid, link, wanted);
    await writeFile(join(folder, 'address'), `${address}\n`);
    await waitForFile(folder, 'up', child, () => complaint);
    // unshare itself stays in our process namespace; its child is the machine's first process.
    const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return machineAt(address, folder, Number.parseInt(children, 10), kill);
  } catch (error) {
    await kill();
    throw error;
  }
}

function machineAt(address: string, folder: string, pid: number, kill: () => Promise<void>): Machine {
  const inside = (script: string) =>
    run([
      'nsenter',
      '-t',
      String(pid),
      '--mount',
      '--net',
      '--pid',
      '--uts',
      '--ipc',
      '/bin/sh',
      '-c',
      script,
    ]);
  const startSshd = async () => {
    await inside('[ -e /run/vm/pid ] || /usr/sbin/sshd -f /run/vm/sshd_config -E /run/vm/log');
    await waitUntil(
      () => listens(address),
      30_000,
      () => `no sshd at ${address}`,
    );
  };
  const stopSshd = async () => {
    await inside(STOP_SSHD);
  };
  return {
    address,
    startSshd,
    stopSshd,
    async replace({ keepHostKey = false } = {}) {
      await stopSshd();
      await writeBoot(folder);
      const changed = keepHostKey ? ['boot_id'] : BOOT_FILES;
      // In place, since the boot id's file is mounted.
      await inside(changed.map((file) => `cat /run/vm/made/${file} >/run/vm/${file}`).join('\n'));
      await startSshd();
    },
    log: () => inside('cat /run/vm/log'),
    kill,
  };
}

/** A connection is not a login: sshd listens, whatever it says afterwards. */
export function listens(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port: 22, timeout: 2_000 });
    const end = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.on('connect', () => end(true));
    socket.on('error', () => end(false));
    socket.on('timeout', () => end(false));
  });
}

const NAMESPACES = [
  ...['--mount', '--net', '--pid', '--uts', '--ipc', '--fork', '--kill-child', '--propagation', 'private'],
];

const BOOT_FILES = ['boot_id', 'host_key', 'host_key.pub'];

/**
 * The first process ($1: folder with the machine's parts, $2: its name). Its own /proc, /run, /tmp and /home, a
 * passwd of its own, a boot id of its own, and no way out: only answers leave. It ends with its input, and until
 * then collects the dead.
 */
const INIT = `
set -e
dir=$1
: >"$dir/unshared"
hostname "$2"
mount -t proc proc /proc
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/vm/made /run/sshd
cp "$dir/passwd" "$dir/group" "$dir/shadow" "$dir/boot_id" "$dir/host_key" "$dir/host_key.pub" \\
  "$dir/authorized_keys" "$dir/sshd_config" /run/vm/
chmod 600 /run/vm/host_key /run/vm/shadow
mount --bind "$dir" /run/vm/made
for file in passwd group shadow; do mount --bind /run/vm/$file /etc/$file; done
mount --bind /run/vm/boot_id /proc/sys/kernel/random/boot_id
for which in all default; do echo 1 >/proc/sys/net/ipv6/conf/$which/disable_ipv6; done
while [ ! -e "$dir/address" ]; do sleep 0.02; done
read -r address <"$dir/address"
ip link set lo up
ip link set eth0 up
ip addr add "$address/32" dev eth0
ip route add ${HOST_ADDRESS}/32 dev eth0
iptables -w -A OUTPUT -o lo -j ACCEPT
iptables -w -A OUTPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
iptables -w -P OUTPUT DROP
mount -t tmpfs -o mode=755 tmpfs /home
mkdir -m 700 /home/sandbox
chown 65532:65532 /home/sandbox
: >"$dir/up"
mount -t tmpfs -o size=512m,mode=1777 tmpfs /tmp
cat >/dev/null
`;

/** The listener first, then those who serve connections, whatever they run. */
const STOP_SSHD = `
[ -e /run/vm/pid ] || exit 0
grep -q machine- /proc/1/cmdline || exit 1
kill -KILL "$(cat /run/vm/pid)"
rm -f /run/vm/pid
for dir in /proc/[0-9]*; do
  read -r name 2>/dev/null <"$dir/comm" || continue
  [ "$name" = sshd ] && kill -KILL "\${dir#/proc/}"
done
exit 0
`;

async function writeParts(folder: string, keys: string): Promise<void> {
  await writeBoot(folder);
  await mkdir(folder, { recursive: true });
  const parts: Readonly<Record<string, string>> = {
    passwd: `root:x:0:0::/root:/bin/sh\nsshd:x:102:65534::/run/sshd:/usr/sbin/nologin\nsandbox:x:65532:65532::/home/sandbox:/bin/sh\n`,
    group: 'root:x:0:\nnogroup:x:65534:\nsandbox:x:65532:\n',
    shadow: 'root:*:1::::::\nsshd:*:1::::::\nsandbox:*:1::::::\n',
    authorized_keys: keys,
    sshd_config: SSHD_CONFIG,
  };
  for (const [file, text] of Object.entries(parts)) await writeFile(join(folder, file), text);
}

/** What differs from boot to boot. */
async function writeBoot(folder: string): Promise<void> {
  const key = join(folder, 'host_key');
  await rm(key, { force: true });
  await run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'machine', '-f', key]);
  await writeFile(join(folder, 'boot_id'), `${randomUUID()}\n`);
}

const SSHD_CONFIG = `
Port 22
HostKey /run/vm/host_key
PidFile /run/vm/pid
AuthorizedKeysFile /run/vm/authorized_keys
AllowUsers sandbox
AuthenticationMethods publickey
UsePAM no
UseDNS no
StrictModes no
AllowTcpForwarding no
AllowAgentForwarding no
PermitUserEnvironment no
PermitTunnel no
X11Forwarding no
PrintMotd no
LogLevel VERBOSE
`;

async function waitForFile(
  folder: string,
  file: string,
  child: ChildProcess,
  complaint: () => string,
): Promise<void> {
  const exists = () =>
    readFile(join(folder, file)).then(
      () => true,
      () => false,
    );
  await waitUntil(
    async () => {
      if (child.exitCode !== null) throw new Error(`the machine ended at once: ${complaint()}`);
      return exists();
    },
    60_000,
    () => `the machine is not ${file} after 60 s: ${complaint()}`,
  );
}

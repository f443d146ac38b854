import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../cluster/run.ts';
import type { TarEntry } from '../cluster/tar.ts';

/** Where QEMU's user networking puts the guest, and itself. */
export const GUEST_ADDRESS = '10.0.2.15';
const GATEWAY = '10.0.2.2';

/** In this order; each needs those before it. What the kernel has built in is left out. */
const MODULES = [
  ...['virtio_ring', 'virtio', 'virtio_pci_legacy_dev', 'virtio_pci_modern_dev', 'virtio_pci'],
  ...['failover', 'net_failover', 'virtio_net', 'virtio_blk'],
];
const LOADER = 'usr/lib64/ld-linux-x86-64.so.2';
const PROGRAMS = ['usr/sbin/sshd', 'usr/bin/ssh-keygen'];

const FILES: Readonly<Record<string, string>> = {
  'etc/passwd':
    'root:x:0:0::/root:/bin/sh\nsshd:x:102:65534::/run/sshd:/bin/false\nsandbox:x:65532:65532::/home/sandbox:/bin/sh\n',
  'etc/group': 'root:x:0:\nnogroup:x:65534:\nsandbox:x:65532:\n',
  // No password opens an account.
  'etc/shadow': 'root:*:1::::::\nsshd:*:1::::::\nsandbox:*:1::::::\n',
  'etc/nsswitch.conf': 'passwd: files\ngroup: files\nshadow: files\nhosts: files\n',
  'etc/shells': '/bin/sh\n',
  'etc/sshd_config': `
HostKey /etc/host_key
AllowUsers sandbox
AuthenticationMethods publickey
UsePAM no
UseDNS no
AllowTcpForwarding no
AllowAgentForwarding no
PermitTunnel no
X11Forwarding no
PrintMotd no
`,
  'etc/inittab': '::sysinit:/etc/boot\n::respawn:/usr/sbin/sshd -D -f /etc/sshd_config -E /run/sshd.log\n',
  // The keys are an archive on the disk with the serial that images of sandboxes look for. The host key is made here,
  // so that nobody has seen it before.
  'etc/boot': `#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts && mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /tmp
for module in /modules/*; do insmod "$module"; done
ip link set lo up
ip addr add ${GUEST_ADDRESS}/24 dev eth0
ip link set eth0 up
ip route add default via ${GATEWAY}
mkdir -p /run/sshd /run/keys /home/sandbox/.ssh
for disk in /sys/block/vd*; do
  [ "$(cat "$disk/serial")" = ssh-pubkeys ] && tar -xf "/dev/\${disk##*/}" -C /run/keys
done
cat /run/keys/* >/home/sandbox/.ssh/authorized_keys
chmod 700 /home/sandbox /home/sandbox/.ssh
chown -R 65532:65532 /home/sandbox
ssh-keygen -q -t ed25519 -N '' -f /etc/host_key
echo "guest: booted in $(cut -d ' ' -f 1 /proc/uptime) s" >/dev/console
`,
};

/** Changes when what is in the guest changes. */
export const CONTENT = { MODULES, PROGRAMS, FILES, layout: 1 };

/** The guest's files, from its packages unpacked below `root`. */
export async function guestEntries(root: string): Promise<readonly TarEntry[]> {
  const busybox = { path: join(root, 'usr/bin/busybox') };
  const folders = [
    'dev',
    'etc',
    'home',
    'home/sandbox',
    'modules',
    'proc',
    'root',
    'run',
    'sys',
    'tmp',
    'usr',
  ];
  const applets = (await run([busybox.path, '--list']))
    .split('\n')
    .filter((name) => name !== '' && name !== 'busybox');
  return [
    ...folders.map(directory),
    ...['usr/bin', 'usr/sbin', 'usr/lib', 'usr/lib/x86_64-linux-gnu', 'usr/lib64'].map(directory),
    ...['bin', 'sbin', 'lib', 'lib64'].map((name) => symlink(name, `usr/${name}`)),
    symlink('init', 'usr/bin/busybox'),
    { kind: 'file', name: 'usr/bin/busybox', mode: 0o755, content: busybox },
    ...applets.map((name) => symlink(`usr/bin/${name}`, 'busybox')),
    ...modules(root),
    ...(await programs(root)),
    ...Object.entries(FILES).map(([name, text]) => file(name, name === 'etc/boot' ? 0o755 : 0o644, text)),
  ];
}

const directory = (name: string): TarEntry => ({ kind: 'directory', name, mode: 0o755 });
const symlink = (name: string, target: string): TarEntry => ({ kind: 'symlink', name, target });
const file = (name: string, mode: number, text: string): TarEntry => ({
  ...{ kind: 'file', name, mode },
  content: Buffer.from(text),
});

/** Numbered, since a shell's pattern sorts by name. */
function modules(root: string): readonly TarEntry[] {
  const all = readdirSync(join(root, 'usr/lib/modules'), { recursive: true, encoding: 'utf8' });
  return MODULES.flatMap((module, at): TarEntry[] => {
    const found = all.find((path) => path.endsWith(`/${module}.ko`));
    if (found === undefined) return [];
    const name = `modules/${String(at).padStart(2, '0')}-${module}.ko`;
    return [{ kind: 'file', name, mode: 0o644, content: { path: join(root, 'usr/lib/modules', found) } }];
  });
}

/** Programs with the libraries that the loader would take for them. */
async function programs(root: string): Promise<readonly TarEntry[]> {
  const inside = async (...argv: readonly string[]) => await run(['chroot', root, ...argv]);
  const wanted = new Set([LOADER]);
  for (const program of PROGRAMS) {
    wanted.add(program);
    const libraries = await inside(`/${LOADER}`, '--list', `/${program}`);
    for (const [, path = ''] of libraries.matchAll(/=> \/(\S+)/g))
      wanted.add(path.replace(/^(?!usr\/)/, 'usr/'));
  }
  const entries: TarEntry[] = [];
  for (const name of [...wanted].toSorted()) {
    // Links of packages lead to places in their own root.
    const real = (await inside('/usr/bin/busybox', 'realpath', `/${name}`)).trim();
    entries.push({ kind: 'file', name, mode: 0o755, content: { path: join(root, real) } });
  }
  return entries;
}

import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { arch } from 'node:os';
import { basename, join } from 'node:path';
import { withLock } from '../cluster/lock.ts';
import { installMissing } from '../cluster/packages.ts';
import { cacheRoot, type Log } from '../cluster/paths.ts';
import { downloadPackages, unpackPackages } from '../cluster/rootfs.ts';
import { writeCpio } from './cpio.ts';
import { CONTENT, guestEntries } from './rootfs.ts';

/** What QEMU needs to boot the guest. */
export interface GuestImage {
  readonly kernel: string;
  /** The whole root file system, unpacked by the kernel. */
  readonly initrd: string;
}

const needs = [{ anyOf: ['qemu-system-x86_64'], package: 'qemu-system-x86' }];

/** Kernel for machines of clouds: small, and with drivers for QEMU's devices. */
const PACKAGES = ['linux-image-cloud-amd64', 'openssh-server', 'busybox-static'];
/** Of these and what they depend on nothing else is used, and initramfs-tools alone would cost seconds. */
const USED = /^(linux-image-\d.*|openssh-(server|client)|busybox-static|lib.*|zlib1g)_/;

/**
 * A small guest of Debian's kernel, busybox and sshd, made once below the cache, and QEMU to run it (installed where it
 * is missing, some 100 MB). Needs root and an x86-64 machine.
 */
export async function ensureGuestImage(log: Log): Promise<GuestImage> {
  if (arch() !== 'x64')
    throw new Error(`the guest is made for x86-64 and this is ${arch()}: leave its test out`);
  await installMissing(needs, log);
  const home = join(cacheRoot(), 'guest');
  mkdirSync(home, { recursive: true });
  return withLock(join(home, 'lock'), 'making the guest', log, async () => {
    const folder = join(home, `debs-${digest(PACKAGES)}`);
    const debs = await downloadPackages(folder, PACKAGES, log, 'a guest, once (some 80 MB)');
    const key = digest([CONTENT, debs]);
    const image = { kernel: join(home, `kernel-${key}`), initrd: join(home, `initrd-${key}`) };
    if (existsSync(image.kernel) && existsSync(image.initrd)) return image;
    log('making the guest, once (some 10 s)');
    const root = join(home, 'root');
    await unpackPackages(
      root,
      debs.filter((deb) => USED.test(basename(deb))).map((deb) => join(folder, deb)),
    );
    writeCpio(`${image.initrd}.partial`, await guestEntries(root));
    renameSync(`${image.initrd}.partial`, image.initrd);
    copyFileSync(join(root, 'boot', kernelIn(root)), `${image.kernel}.partial`);
    renameSync(`${image.kernel}.partial`, image.kernel);
    rmSync(root, { recursive: true, force: true });
    return image;
  });
}

function kernelIn(root: string): string {
  const kernel = readdirSync(join(root, 'boot')).find((name) => name.startsWith('vmlinuz-'));
  if (kernel === undefined)
    throw new Error('no kernel in the packages of the guest: see PACKAGES in hack/guest/image.ts');
  return kernel;
}

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);
}

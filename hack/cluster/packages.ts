import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { withLock } from './lock.ts';
import { cacheRoot, type Log } from './paths.ts';
import { run, toolPath } from './run.ts';

export interface Need {
  readonly anyOf: readonly string[];
  readonly package: string;
}

/**
 * What the node, and the tests' stand-ins for machines, need here: a command in PATH (or one of several files), and
 * the Debian package that has it.
 */
const needs: readonly Need[] = [
  { anyOf: ['containerd'], package: 'containerd' },
  { anyOf: ['runc'], package: 'runc' },
  { anyOf: ['/usr/lib/cni/bridge', '/opt/cni/bin/bridge'], package: 'containernetworking-plugins' },
  { anyOf: ['iptables'], package: 'iptables' },
  { anyOf: ['ipset'], package: 'ipset' },
  { anyOf: ['ip'], package: 'iproute2' },
  { anyOf: ['openssl'], package: 'openssl' },
  { anyOf: ['nsenter'], package: 'util-linux' },
  { anyOf: ['ssh-keygen'], package: 'openssh-client' },
  { anyOf: ['sshd'], package: 'openssh-server' },
];

/** Folder of the CNI plugins: Debian's own, or where upstream's archive is unpacked by custom. */
export function cniBinDir(): string {
  return existsSync('/usr/lib/cni/bridge') ? '/usr/lib/cni' : '/opt/cni/bin';
}

/** Installs the missing Debian packages. Throws one sentence with the command when it may not or cannot. */
export async function ensurePackages(log: Log): Promise<void> {
  if (process.platform !== 'linux') {
    throw new Error(
      `a cluster node needs Linux and this is ${process.platform}: use an existing cluster with --context NAME`,
    );
  }
  if (process.getuid?.() !== 0) {
    throw new Error(
      'a cluster node needs root (namespaces, mounts, cgroups): run the same command with "sudo -E"',
    );
  }
  await installMissing(needs, log);
}

/** Throws one sentence with the command when it cannot. Needs root. Of two processes at once one installs at a time. */
export async function installMissing(wanted: readonly Need[], log: Log): Promise<void> {
  if (missingOf(wanted).length === 0) return;
  await withLock(join(cacheRoot(), 'packages.lock'), 'installing packages', log, async () => {
    const missing = missingOf(wanted);
    if (missing.length > 0) await installAll(missing, log);
  });
}

function missingOf(wanted: readonly Need[]): readonly string[] {
  return wanted.filter((need) => !need.anyOf.some(present)).map((need) => need.package);
}

async function installAll(missing: readonly string[], log: Log): Promise<void> {
  const install = ['apt-get', 'install', '-y', '--no-install-recommends', ...missing];
  if (!present('apt-get')) {
    throw new Error(
      `missing on this machine: ${missing.join(', ')} (Debian's names); install them with its package manager`,
    );
  }
  log(`installing Debian packages: ${missing.join(' ')} (some 20 s)`);
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  try {
    await withoutServices(async () => {
      await run(['apt-get', 'update', '-q'], { env });
      await run(install, { env });
    });
  } catch (error) {
    throw new Error(`could not install ${missing.join(', ')}: try "apt-get update && ${install.join(' ')}"`, {
      cause: error,
    });
  }
}

/** Whether a command is in PATH, or the file exists for an absolute path. */
export function present(command: string): boolean {
  if (command.startsWith('/')) return existsSync(command);
  return toolPath()
    .split(delimiter)
    .some((directory) => existsSync(join(directory, command)));
}

/**
 * Debian starts a service when its package is installed; each node runs a containerd of its own, so the
 * machine's must stay down. policy-rc.d is Debian's switch for that: 101 forbids the action.
 */
async function withoutServices(work: () => Promise<void>): Promise<void> {
  const policy = '/usr/sbin/policy-rc.d';
  if (existsSync(policy)) return work();
  writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    await work();
  } finally {
    rmSync(policy, { force: true });
  }
}

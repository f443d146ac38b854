import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitUntil } from './api.ts';
import { createCgroup, removeCgroup } from './cgroups.ts';
import { shortId } from './paths.ts';
import type { Processes } from './processes.ts';
import { CommandError, run } from './run.ts';

/**
 * The node is a machine of its own as far as the kernel can make one: a network, mount and process namespace and a
 * cgroup. Its bridge, firewall rules, mounts and processes therefore never meet those of the host or of another
 * cluster, and all of them end the moment its first process does.
 */
export interface Machine {
  readonly initPid: number;
  /** The host's address on the cable between host and node; the API server listens here. */
  readonly hostAddress: string;
  readonly nodeAddress: string;
  /** Pods' addresses; the host has a route to them. */
  readonly podSubnet: string;
  /** Below each cgroup controller, with a leading slash. */
  readonly cgroup: string;
  readonly link: string;
}

const stateFile = 'machine.json';
const initRole = 'machine';

/** Starts the empty machine and its cable. `stateDir` must be on a disk that overlayfs can use. */
export async function createMachine(name: string, stateDir: string, processes: Processes): Promise<Machine> {
  for (const hidden of ['/run/', '/var/log/', '/var/lib/cni/']) {
    if (stateDir.startsWith(hidden)) {
      throw new Error(
        `the cluster's state cannot be in ${hidden}, which its node replaces: set XDG_CACHE_HOME`,
      );
    }
  }
  const cniState = join(stateDir, 'cni');
  const ready = join(stateDir, 'machine.ready');
  rmSync(ready, { force: true });
  mkdirSync(cniState, { recursive: true });
  // The CNI plugins' cache has a fixed place; the node mounts its own folder over it.
  mkdirSync('/var/lib/cni', { recursive: true });
  await loadModules();
  const outer = [
    'unshare',
    '--mount',
    '--net',
    '--pid',
    '--fork',
    '--kill-child',
    '--propagation',
    'private',
  ];
  const initPid = await processes.start(
    initRole,
    [...outer, '--', '/bin/sh', '-c', initScript, 'init', cniState, ready],
    {
      forks: true,
    },
  );
  await waitUntil(
    () => existsSync(ready) || !processes.alive(initRole),
    10_000,
    () => `the node's namespaces are not ready after 10 s; log:\n${processes.logTail(initRole)}`,
  );
  if (!processes.alive(initRole))
    throw new Error(`no namespaces for the node:\n${processes.logTail(initRole)}`);
  const cable = await plugCable(name, initPid);
  const machine: Machine = { initPid, ...cable, cgroup: `/hummingbird-${name}` };
  createCgroup(machine.cgroup);
  writeFileSync(join(stateDir, stateFile), JSON.stringify(machine));
  return machine;
}

export function readMachine(stateDir: string): Machine {
  return JSON.parse(readFileSync(join(stateDir, stateFile), 'utf8'));
}

/** Ends every process of the machine; mounts, bridge, rules and addresses go with them. Works on half-made machines. */
export async function destroyMachine(name: string, processes: Processes): Promise<void> {
  await processes.kill(initRole);
  await removeLink(linkName(name));
  await removeCgroup(`/hummingbird-${name}`);
}

/** Runs a command inside the machine's network (and mounts), without becoming one of its processes. */
export function inMachine(machine: Machine, argv: readonly string[], stdin?: string): Promise<string> {
  const enter = ['nsenter', '-t', String(machine.initPid), '-m', '-n', '--'];
  return run([...enter, ...argv], stdin === undefined ? {} : { stdin });
}

/**
 * The first process: private /run, /var/log and /proc, then nothing but collecting the dead, which the kernel
 * hands to the first process. ($1: folder for the CNI plugins' state, $2: file that says it is ready.)
 *
 * The metadata addresses of clouds are the machine's own, so that no packet to them ever leaves it. IPv6 is shut
 * towards the pods' bridge: kube-router filters only what has a pod address of its own, and link-local addresses,
 * which every pod has, would lead past every NetworkPolicy to the kubelet and to other pods.
 */
const initScript = `
set -e
mount -t proc proc /proc
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/lock
mount -t tmpfs -o mode=755 tmpfs /var/log
mount --bind "$1" /var/lib/cni
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
ip link add metadata0 type bridge
ip addr add 169.254.169.254/32 dev metadata0
ip addr add fd00:ec2::254/128 dev metadata0 nodad
ip link set metadata0 up
ip6tables -A INPUT -i pods0 -j DROP
ip6tables -A FORWARD -i pods0 -j DROP
: > "$2"
while :; do sleep 3600 & wait; done
`;

/** A veth pair with the first free pair of subnets; adding the pods' route is what claims them. */
async function plugCable(name: string, initPid: number): Promise<Omit<Machine, 'initPid' | 'cgroup'>> {
  const link = linkName(name);
  const inside = ['nsenter', '-t', String(initPid), '-n', '--'];
  await removeLink(link);
  await run(['ip', 'link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(initPid)]);
  await run(['ip', 'link', 'set', link, 'up']);
  await run([...inside, 'ip', 'link', 'set', 'eth0', 'up']);
  for (let index = 0; index < 256; index += 1) {
    const podSubnet = `10.214.${index}.0/24`;
    if (!(await claimRoute(podSubnet, link))) continue;
    const hostAddress = `10.213.${index}.1`;
    const nodeAddress = `10.213.${index}.2`;
    await run(['ip', 'addr', 'add', `${hostAddress}/24`, 'dev', link]);
    await run([...inside, 'ip', 'addr', 'add', `${nodeAddress}/24`, 'dev', 'eth0']);
    await run([...inside, 'ip', 'route', 'add', 'default', 'via', hostAddress]);
    await run(['ip', 'route', 'replace', podSubnet, 'via', nodeAddress, 'dev', link]);
    return { link, hostAddress, nodeAddress, podSubnet };
  }
  await removeLink(link);
  throw new Error('all of 10.214.0.0/16 is in use for pods: end other clusters (see "ip route")');
}

async function claimRoute(subnet: string, link: string): Promise<boolean> {
  try {
    await run(['ip', 'route', 'add', subnet, 'dev', link]);
    return true;
  } catch (error) {
    if (error instanceof CommandError && error.stderr.includes('File exists')) return false;
    throw error;
  }
}

async function removeLink(link: string): Promise<void> {
  if (existsSync(`/sys/class/net/${link}`)) await run(['ip', 'link', 'del', link]).catch(ignoreMissing);
}

/** The interface may go by itself in between, together with the namespace of its other end. */
function ignoreMissing(error: unknown): void {
  if (!(error instanceof CommandError && /Cannot find device|No such device/.test(error.stderr))) throw error;
}

function linkName(name: string): string {
  return `hb-${shortId(name)}`;
}

/** Built in or already loaded on most machines; where one is really missing, what needs it says so itself. */
async function loadModules(): Promise<void> {
  for (const module of ['overlay', 'br_netfilter', 'ip_set'])
    await run(['modprobe', '-q', module]).catch(() => {});
}

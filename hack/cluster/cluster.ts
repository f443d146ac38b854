import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { type Binaries, ensureBinaries } from './binaries.ts';
import { attachControlPlane, type ControlPlane, startControlPlane } from './control-plane.ts';
import { pauseFirewall, resumeFirewall, startFirewall, waitFirewall } from './firewall.ts';
import { ensureImages, type ImageArchives } from './image.ts';
import { writeKubeconfig } from './kubeconfig.ts';
import { withLock } from './lock.ts';
import { createMachine, destroyMachine, readMachine } from './machine.ts';
import { importImage, startContainerd, startKubelet, waitNodeReady, waitNodeRegistered } from './node.ts';
import { ensurePackages } from './packages.ts';
import { clusterDir, clustersRoot, type Log } from './paths.ts';
import { processesOf } from './processes.ts';
import { run } from './run.ts';

export interface ClusterOptions {
  readonly name: string;
  /** Emptied at the start. Default: a folder of the cache with the cluster's name. */
  readonly stateDir?: string;
  readonly log: Log;
  /** Whether NetworkPolicy is enforced; true when left out. */
  readonly firewall?: boolean;
  /** An audit.k8s.io/v1 Policy; the log is at `controlPlane.auditLogPath`. */
  readonly auditPolicy?: object;
}

/** A running one-node cluster: pods really run, exec, ServiceAccount tokens, RBAC and NetworkPolicy are the real thing. */
export interface Cluster {
  readonly name: string;
  readonly stateDir: string;
  readonly nodeName: string;
  /** The administrator's kubeconfig. */
  readonly kubeconfigPath: string;
  readonly server: string;
  /** Base64 of the CA's PEM, as kubeconfigs hold it. */
  readonly caData: string;
  readonly adminToken: string;
  readonly kubectlPath: string;
  readonly controlPlane: ControlPlane;
  /** The host's address that pods could reach: something listening there is what a policy must keep from them. */
  readonly hostAddress: string;
  /** Runs kubectl as administrator; its stdout, or an error with its stderr. */
  kubectl(args: readonly string[], stdin?: string): Promise<string>;
  /** Loads an image from an OCI archive; pods then use it by its reference. */
  loadImage(archive: string): Promise<void>;
  /** Stops enforcing NetworkPolicy (they stay in the API): the negative control of a test about the network. */
  pauseFirewall(): Promise<void>;
  resumeFirewall(): Promise<void>;
  /** A token of the ServiceAccount from the TokenRequest API, good for a day. */
  serviceAccountToken(namespace: string, name: string): Promise<string>;
  /** A kubeconfig that acts as the ServiceAccount, so that its RBAC is what counts. */
  kubeconfigFor(namespace: string, serviceAccount: string): Promise<string>;
  /** Ends everything and removes its state. */
  stop(): Promise<void>;
}

const stateFile = 'cluster.json';
const nodeName = 'node1';

/** Starts a cluster; what an earlier run of the same name left is removed first. Needs root on Linux. */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const { name, log } = options;
  const stateDir = resolve(options.stateDir ?? clusterDir(name));
  await ensurePackages(log);
  const binaries = await ensureBinaries(log);
  const images = await ensureImages(log);
  return locked(stateDir, log, async () => {
    await remove(stateDir);
    return start(options, stateDir, binaries, images);
  });
}

async function start(
  { name, log, firewall = true, auditPolicy }: ClusterOptions,
  stateDir: string,
  binaries: Binaries,
  images: ImageArchives,
): Promise<Cluster> {
  mkdirSync(join(stateDir, 'log'), { recursive: true, mode: 0o700 });
  writeFileSync(join(stateDir, stateFile), JSON.stringify({ name }));
  const processes = processesOf(stateDir);
  try {
    const machine = await createMachine(name, stateDir, processes);
    const node = { name: nodeName, address: machine.nodeAddress };
    // The control plane's start and the runtime's hardly touch, and each waits for itself most of the time.
    const [controlPlane] = await Promise.all([
      startControlPlane({
        ...{ stateDir, log, controllers: true, address: machine.hostAddress, node },
        ...(auditPolicy === undefined ? {} : { auditPolicy }),
      }),
      startContainerd(machine, stateDir, processes).then(async () => {
        await importImage(machine, images.pause);
        await importImage(machine, images.sandbox);
      }),
    ]);
    await startKubelet(machine, nodeName, stateDir, binaries, processes);
    await waitNodeRegistered(controlPlane.access, nodeName, processes);
    if (firewall) await startFirewall(machine, nodeName, controlPlane.access, stateDir, binaries, processes);
    await waitNodeReady(controlPlane.access, nodeName, processes);
    if (firewall) await waitFirewall(machine, processes);
    return clusterOn(stateDir, binaries);
  } catch (error) {
    await remove(stateDir).catch((left: unknown) => log(`cleaning up: ${String(left)}`));
    throw error;
  }
}

/** The running cluster whose state is in `stateDir`, started by this or any other process. */
export async function attachCluster(stateDir: string, log: Log = () => {}): Promise<Cluster> {
  const directory = resolve(stateDir);
  if (!existsSync(join(directory, stateFile)) || !processesOf(directory).alive('kubelet')) {
    throw new Error(
      `no running cluster in ${directory}: start one with "node hack/cluster/main.ts up --name ${basename(directory)}"`,
    );
  }
  return clusterOn(directory, await ensureBinaries(log));
}

/** Ends whatever of a cluster still exists, from its state directory alone, and removes the directory. */
export async function removeCluster(stateDir: string, log: Log = () => {}): Promise<void> {
  if (existsSync(stateDir)) await locked(resolve(stateDir), log, () => remove(resolve(stateDir)));
}

async function remove(stateDir: string): Promise<void> {
  const file = join(stateDir, stateFile);
  if (!existsSync(file)) return;
  const { name }: { name: string } = JSON.parse(readFileSync(file, 'utf8'));
  const processes = processesOf(stateDir);
  await destroyMachine(name, processes);
  // etcd goes last: an API server without it does not end on its own.
  const roles = processes.roles().filter((role) => role !== 'etcd');
  await Promise.all(roles.map((role) => processes.kill(role)));
  await processes.kill('etcd');
  rmSync(stateDir, { recursive: true, force: true });
}

/** Names of the clusters in the cache, with whether their node runs. */
export function listClusters(): readonly { name: string; stateDir: string; running: boolean }[] {
  if (!existsSync(clustersRoot())) return [];
  return readdirSync(clustersRoot())
    .map((name) => ({ name, stateDir: join(clustersRoot(), name) }))
    .filter(({ stateDir }) => existsSync(join(stateDir, stateFile)))
    .map((cluster) => ({ ...cluster, running: processesOf(cluster.stateDir).alive('kubelet') }));
}

/** One process at a time starts or ends the cluster of a directory. */
function locked<T>(stateDir: string, log: Log, work: () => Promise<T>): Promise<T> {
  return withLock(`${stateDir}.lock`, `the cluster in ${stateDir}`, log, work);
}

function clusterOn(stateDir: string, binaries: Binaries): Cluster {
  const { name }: { name: string } = JSON.parse(readFileSync(join(stateDir, stateFile), 'utf8'));
  const machine = readMachine(stateDir);
  const controlPlane = attachControlPlane(stateDir, binaries);
  const { processes, server, caData, kubeconfigPath } = controlPlane;
  // kubectl keeps what it discovered in the home directory unless told where else.
  const cache = join(stateDir, 'kubectl-cache');
  const asAdministrator = [binaries.kubectl, `--kubeconfig=${kubeconfigPath}`, `--cache-dir=${cache}`];
  const directly = { HTTPS_PROXY: undefined, https_proxy: undefined };
  const kubectl = (args: readonly string[], stdin?: string) =>
    run([...asAdministrator, ...args], { env: directly, ...(stdin === undefined ? {} : { stdin }) });
  const serviceAccountToken = async (namespace: string, account: string) =>
    (await kubectl(['create', 'token', account, `--namespace=${namespace}`, '--duration=24h'])).trim();
  return {
    name,
    stateDir,
    nodeName,
    kubeconfigPath,
    server,
    caData,
    adminToken: controlPlane.adminToken,
    kubectlPath: binaries.kubectl,
    controlPlane,
    hostAddress: machine.hostAddress,
    kubectl,
    loadImage: (archive) => importImage(machine, resolve(archive)),
    pauseFirewall: () => pauseFirewall(machine, processes),
    resumeFirewall: () => resumeFirewall(machine, processes),
    serviceAccountToken,
    async kubeconfigFor(namespace, serviceAccount) {
      const token = await serviceAccountToken(namespace, serviceAccount);
      const file = join(stateDir, `${namespace}.${serviceAccount}.kubeconfig`);
      writeKubeconfig(file, { clusterName: name, server, caData, user: serviceAccount, token, namespace });
      return file;
    },
    stop: () => removeCluster(stateDir),
  };
}

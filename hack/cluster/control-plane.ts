import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type ApiAccess, apiRequest, waitUntil } from './api.ts';
import { type Binaries, ensureBinaries } from './binaries.ts';
import { writeCredentials } from './credentials.ts';
import { writeKubeconfig } from './kubeconfig.ts';
import type { Log } from './paths.ts';
import { asKubeconfigData } from './pki.ts';
import { freePorts } from './ports.ts';
import { type Processes, processesOf } from './processes.ts';

export interface ControlPlaneOptions {
  /** Data, keys and tokens in it are replaced; must not hold a running cluster. */
  readonly stateDir: string;
  readonly log: Log;
  /** Also run controller-manager and scheduler. Without them nothing creates ServiceAccounts, so their admission is off. */
  readonly controllers: boolean;
  /** Address the API server listens on. */
  readonly address?: string;
  /** The node that kubelet.kubeconfig is for. */
  readonly node?: { readonly name: string; readonly address: string };
  /** Whether the kernel ends it together with the process that started it; by default so when it has no node. */
  readonly dieWithParent?: boolean;
  /** An audit.k8s.io/v1 Policy: what it chooses is written to `auditLogPath`, one JSON object a line. */
  readonly auditPolicy?: object;
}

/** What is written down about a control plane; enough to use it again from another process. */
export interface ControlPlaneState {
  readonly server: string;
  readonly etcd: string;
  readonly address: string;
  readonly controllers: boolean;
  readonly audited: boolean;
  /** Put before every command line. */
  readonly wrapper: readonly string[];
}

/** etcd and kube-apiserver (and the controllers) as processes of this machine. */
export interface ControlPlane {
  readonly stateDir: string;
  readonly server: string;
  /** Base64 of the CA's PEM, as kubeconfigs hold it. */
  readonly caData: string;
  readonly adminToken: string;
  readonly kubeconfigPath: string;
  readonly access: ApiAccess;
  /** Undefined when it was started without an audit policy. */
  readonly auditLogPath: string | undefined;
  readonly processes: Processes;
  /** SIGKILL: connections break without a word. */
  killApiserver(): Promise<void>;
  /** SIGTERM: running requests are given their time. */
  stopApiserver(): Promise<void>;
  /** Starts it again on the same port and waits until it is ready. */
  startApiserver(): Promise<void>;
  /** A further API server on the same etcd, with the same tokens and certificates, on a port of its own. */
  startSecondApiserver(): Promise<SecondApiserver>;
  killEtcd(): Promise<void>;
  startEtcd(): Promise<void>;
  /** Forgets all history up to now, so that older resourceVersions are answered 410; returns the revision. */
  compactEtcd(): Promise<number>;
  /** Ends all of it. The state directory stays. */
  stop(): Promise<void>;
}

export interface SecondApiserver {
  readonly server: string;
  readonly access: ApiAccess;
  readonly kubeconfigPath: string;
  kill(): Promise<void>;
  stop(): Promise<void>;
}

const stateFile = 'control-plane.json';
const auditPolicyFile = 'audit-policy.json';
const auditLogFile = 'log/audit.log';

/** Starts a control plane with fresh keys, tokens and free ports; returns when `/readyz` says ok. */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { log, controllers, address = '127.0.0.1', node, auditPolicy } = options;
  const stateDir = resolve(options.stateDir);
  const binaries = await ensureBinaries(log);
  for (const entry of ['etcd', 'pki', stateFile])
    rmSync(join(stateDir, entry), { recursive: true, force: true });
  mkdirSync(join(stateDir, 'log'), { recursive: true, mode: 0o700 });
  const processes = processesOf(stateDir);
  const [clientPort, peerPort, securePort] = await freePorts(3, address);
  const etcd = `http://127.0.0.1:${clientPort}`;
  const dieWithParent = options.dieWithParent ?? node === undefined;
  const wrapper = dieWithParent ? ['setpriv', '--pdeathsig', 'KILL', '--'] : [];
  const server = `https://${address}:${securePort}`;
  const audited = auditPolicy !== undefined;
  const state: ControlPlaneState = { server, etcd, address, controllers, audited, wrapper };

  // The data is thrown away with the cluster, so etcd need not wait for the disk.
  await processes.start('etcd', [
    ...[...wrapper, binaries.etcd],
    `--data-dir=${join(stateDir, 'etcd')}`,
    `--listen-client-urls=${etcd}`,
    `--advertise-client-urls=${etcd}`,
    `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
    '--unsafe-no-fsync',
  ]);
  await writeCredentials(stateDir, state, node);
  writeFileSync(join(stateDir, stateFile), JSON.stringify(state));
  if (audited) writeFileSync(join(stateDir, auditPolicyFile), JSON.stringify(auditPolicy));
  await processes.start('kube-apiserver', apiserverArguments(binaries, stateDir, state, Number(securePort)));
  const plane = attachControlPlane(stateDir, binaries);
  try {
    await waitReady(plane.access, processes, 'kube-apiserver');
    if (controllers) await startControllers(plane, binaries, wrapper);
  } catch (error) {
    await plane.stop();
    throw error;
  }
  return plane;
}

/** The control plane that another process started in `stateDir`. */
export function attachControlPlane(stateDir: string, binaries: Binaries): ControlPlane {
  const state: ControlPlaneState = JSON.parse(readFileSync(join(stateDir, stateFile), 'utf8'));
  const processes = processesOf(stateDir);
  const caFile = join(stateDir, 'pki/ca.crt');
  const adminToken = readFileSync(join(stateDir, 'pki/admin.token'), 'utf8');
  const access: ApiAccess = { server: state.server, ca: readFileSync(caFile), token: adminToken };
  return {
    stateDir,
    server: state.server,
    caData: asKubeconfigData(caFile),
    adminToken,
    kubeconfigPath: join(stateDir, 'admin.kubeconfig'),
    access,
    auditLogPath: state.audited ? join(stateDir, auditLogFile) : undefined,
    processes,
    killApiserver: () => processes.kill('kube-apiserver'),
    stopApiserver: () => processes.stop('kube-apiserver', 15_000),
    async startApiserver() {
      await processes.restart('kube-apiserver');
      await waitReady(access, processes, 'kube-apiserver');
    },
    async startSecondApiserver() {
      const [port] = await freePorts(1, state.address);
      const role = `kube-apiserver-${port}`;
      const second: ApiAccess = { ...access, server: `https://${state.address}:${port}` };
      await processes.start(role, apiserverArguments(binaries, stateDir, state, Number(port)));
      await waitReady(second, processes, role);
      const kubeconfigPath = join(stateDir, `${role}.kubeconfig`);
      const caData = asKubeconfigData(caFile);
      writeKubeconfig(kubeconfigPath, {
        clusterName: role,
        server: second.server,
        caData,
        user: 'admin',
        token: adminToken,
      });
      return {
        server: second.server,
        access: second,
        kubeconfigPath,
        kill: () => processes.kill(role),
        stop: () => processes.stop(role, 15_000),
      };
    },
    killEtcd: () => processes.kill('etcd'),
    async startEtcd() {
      await processes.restart('etcd');
      await waitUntil(
        () =>
          fetch(`${state.etcd}/health`).then(
            (answer) => answer.ok,
            () => false,
          ),
        20_000,
        () => `etcd is not healthy after 20 s; its log says:\n${processes.logTail('etcd')}`,
      );
    },
    compactEtcd: () => compact(state.etcd),
    stop: () => stopAll(processes),
  };
}

async function startControllers(
  plane: ControlPlane,
  binaries: Binaries,
  wrapper: readonly string[],
): Promise<void> {
  const { processes, stateDir } = plane;
  const common = ['--leader-elect=false', '--secure-port=0', '--kube-api-qps=200', '--kube-api-burst=400'];
  await processes.start('kube-controller-manager', [
    ...[...wrapper, binaries['kube-controller-manager']],
    `--kubeconfig=${join(stateDir, 'controller-manager.kubeconfig')}`,
    `--service-account-private-key-file=${join(stateDir, 'pki/service-accounts.key')}`,
    `--root-ca-file=${join(stateDir, 'pki/ca.crt')}`,
    '--use-service-account-credentials=true',
    ...common,
  ]);
  await processes.start('kube-scheduler', [
    ...[...wrapper, binaries['kube-scheduler']],
    `--kubeconfig=${join(stateDir, 'scheduler.kubeconfig')}`,
    ...common,
  ]);
  const account = '/api/v1/namespaces/default/serviceaccounts/default';
  await waitUntil(
    () =>
      apiRequest(plane.access, account).then(
        (answer) => answer.status === 200,
        () => false,
      ),
    30_000,
    () =>
      `controller-manager made no ServiceAccount in 30 s; its log says:\n${processes.logTail('kube-controller-manager')}`,
  );
}

function apiserverArguments(
  binaries: Binaries,
  stateDir: string,
  state: ControlPlaneState,
  port: number,
): readonly string[] {
  const pki = (name: string) => join(stateDir, 'pki', name);
  return [
    ...[...state.wrapper, binaries['kube-apiserver']],
    `--etcd-servers=${state.etcd}`,
    `--bind-address=${state.address}`,
    `--secure-port=${port}`,
    // Becomes the endpoint of the service "kubernetes", which refuses loopback: TEST-NET-1 stands for "none".
    `--advertise-address=${state.address.startsWith('127.') ? '192.0.2.1' : state.address}`,
    `--tls-cert-file=${pki('apiserver.crt')}`,
    `--tls-private-key-file=${pki('apiserver.key')}`,
    `--client-ca-file=${pki('ca.crt')}`,
    `--token-auth-file=${pki('tokens.csv')}`,
    '--anonymous-auth=false',
    '--authorization-mode=Node,RBAC',
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-signing-key-file=${pki('service-accounts.key')}`,
    `--service-account-key-file=${pki('service-accounts.pub')}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    `--kubelet-certificate-authority=${pki('ca.crt')}`,
    `--kubelet-client-certificate=${pki('kubelet-client.crt')}`,
    `--kubelet-client-key=${pki('kubelet-client.key')}`,
    // The node's name is in no DNS.
    '--kubelet-preferred-address-types=InternalIP',
    '--allow-privileged',
    ...(state.controllers ? [] : ['--disable-admission-plugins=ServiceAccount']),
    ...(state.audited ? auditArguments(stateDir) : []),
  ];
}

/** Each event is written before its request is answered, and none is rotated away. */
function auditArguments(stateDir: string): readonly string[] {
  return [
    `--audit-policy-file=${join(stateDir, auditPolicyFile)}`,
    `--audit-log-path=${join(stateDir, auditLogFile)}`,
    '--audit-log-mode=blocking-strict',
    '--audit-log-maxsize=4096',
    '--audit-log-maxbackup=0',
  ];
}

async function waitReady(access: ApiAccess, processes: Processes, role: string): Promise<void> {
  await waitUntil(
    async () => {
      if (!processes.alive(role))
        throw new Error(`${role} ended while starting; its log says:\n${processes.logTail(role)}`);
      return apiRequest(access, '/readyz').then(
        (answer) => answer.status === 200,
        () => false,
      );
    },
    60_000,
    () => `${role} is not ready after 60 s; its log says:\n${processes.logTail(role)}`,
  );
}

/** etcd's JSON gateway: keys are base64, revisions are decimal strings. */
async function compact(etcd: string): Promise<number> {
  const call = async (path: string, body: unknown): Promise<unknown> => {
    const answer = await fetch(`${etcd}${path}`, { method: 'POST', body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`etcd ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  const range = await call('/v3/kv/range', { key: Buffer.from('compact').toString('base64') });
  const revision = Number((/"revision":"(\d+)"/.exec(JSON.stringify(range)) ?? [])[1]);
  if (!Number.isSafeInteger(revision)) throw new Error('etcd named no revision in its answer');
  await call('/v3/kv/compaction', { revision: String(revision), physical: true });
  return revision;
}

/** kube-apiserver does not end on SIGTERM while etcd is already gone, so etcd goes last. */
async function stopAll(processes: Processes): Promise<void> {
  const own = /^(kube-apiserver|kube-controller-manager|kube-scheduler)/;
  await Promise.all(
    processes
      .roles()
      .filter((role) => own.test(role))
      .map((role) => processes.kill(role)),
  );
  await processes.kill('etcd');
}

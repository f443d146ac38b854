import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { type ApiAccess, apiRequest, waitUntil } from './api.ts';
import type { Binaries } from './binaries.ts';
import { inMachine, type Machine } from './machine.ts';
import { cniBinDir } from './packages.ts';
import type { Processes } from './processes.ts';

export const pauseImage = 'hummingbird.test/pause:1';
export const sandboxImage = 'hummingbird.test/sandbox:1';

/** Starts the machine's containerd and returns when it answers. /run is the machine's own, so sockets are at their usual places. */
export async function startContainerd(
  machine: Machine,
  stateDir: string,
  processes: Processes,
): Promise<void> {
  const config = join(stateDir, 'containerd.toml');
  const cniConfig = join(stateDir, 'cni.conf.d');
  mkdirSync(cniConfig, { recursive: true });
  writeFileSync(config, containerdConfig(stateDir, cniConfig));
  writeFileSync(join(cniConfig, '10-bridge.conflist'), JSON.stringify(bridgeConfig(machine.podSubnet)));
  await processes.start('containerd', ['containerd', '--config', config], { inside: machine.initPid });
  await waitUntil(
    () => {
      if (!processes.alive('containerd'))
        throw new Error(`containerd ended:\n${processes.logTail('containerd')}`);
      return inMachine(machine, ['ctr', 'version']).then(
        () => true,
        () => false,
      );
    },
    30_000,
    () => `containerd does not answer after 30 s; its log says:\n${processes.logTail('containerd')}`,
  );
}

/** Loads an OCI archive so that pods find its image without a registry. The path must not be in /run or /var/log. */
export async function importImage(machine: Machine, archive: string): Promise<void> {
  await inMachine(machine, ['ctr', '-n', 'k8s.io', 'images', 'import', archive]);
}

export async function startKubelet(
  machine: Machine,
  nodeName: string,
  stateDir: string,
  binaries: Binaries,
  processes: Processes,
): Promise<void> {
  const config = join(stateDir, 'kubelet.yaml');
  writeFileSync(config, stringify(kubeletConfig(machine, stateDir)));
  await processes.start(
    'kubelet',
    [
      binaries.kubelet,
      `--config=${config}`,
      `--kubeconfig=${join(stateDir, 'kubelet.kubeconfig')}`,
      `--root-dir=${join(stateDir, 'kubelet')}`,
      `--cert-dir=${join(stateDir, 'kubelet-pki')}`,
      `--hostname-override=${nodeName}`,
      `--node-ip=${machine.nodeAddress}`,
    ],
    { inside: machine.initPid },
  );
}

/** Waits until kubelet has made its Node object. */
export async function waitNodeRegistered(
  access: ApiAccess,
  nodeName: string,
  processes: Processes,
): Promise<void> {
  await waitForNode(access, nodeName, processes, 'registered', () => true);
}

/** Waits until the node takes pods. */
export async function waitNodeReady(
  access: ApiAccess,
  nodeName: string,
  processes: Processes,
): Promise<void> {
  await waitForNode(access, nodeName, processes, 'Ready', (node) => {
    const ready = node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
    return ready === true;
  });
}

interface NodeObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

async function waitForNode(
  access: ApiAccess,
  nodeName: string,
  processes: Processes,
  what: string,
  condition: (node: NodeObject) => boolean,
): Promise<void> {
  await waitUntil(
    async () => {
      if (!processes.alive('kubelet'))
        throw new Error(`kubelet ended; its log says:\n${processes.logTail('kubelet')}`);
      const answer = await apiRequest(access, `/api/v1/nodes/${nodeName}`).catch(() => undefined);
      return answer?.status === 200 && condition(JSON.parse(answer.body));
    },
    60_000,
    () => `node ${nodeName} is not ${what} after 60 s; kubelet's log says:\n${processes.logTail('kubelet')}`,
  );
}

function containerdConfig(stateDir: string, cniConfig: string): string {
  const quoted = (text: string) => JSON.stringify(text);
  return `version = 2
root = ${quoted(join(stateDir, 'containerd'))}
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = ${quoted(join(stateDir, 'opt'))}
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseImage}"
  # Without it runc may not lower the score of the pause container and no pod starts inside a restricted machine.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = ${quoted(cniBinDir())}
    conf_dir = ${quoted(cniConfig)}
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
`;
}

/** No masquerading: pods reach the node, each other and the host, never the network beyond. */
function bridgeConfig(podSubnet: string): unknown {
  const ipam = { type: 'host-local', ranges: [[{ subnet: podSubnet }]], routes: [{ dst: '0.0.0.0/0' }] };
  return {
    cniVersion: '1.0.0',
    name: 'pods',
    plugins: [{ type: 'bridge', bridge: 'pods0', isGateway: true, ipMasq: false, ipam }],
  };
}

function kubeletConfig(machine: Machine, stateDir: string): unknown {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    // Only the API server, with a certificate of the cluster's authority, may exec; pods that reach the port may not.
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: join(stateDir, 'pki/ca.crt') },
    },
    authorization: { mode: 'Webhook' },
    tlsCertFile: join(stateDir, 'pki/kubelet.crt'),
    tlsPrivateKeyFile: join(stateDir, 'pki/kubelet.key'),
    containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
    cgroupDriver: 'cgroupfs',
    cgroupRoot: machine.cgroup,
    cgroupsPerQOS: true,
    enforceNodeAllocatable: [],
    failCgroupV1: false,
    failSwapOn: false,
    localStorageCapacityIsolation: true,
    // The API has no such limit for one pod: what bounds a fork bomb is the node's.
    podPidsLimit: 1024,
    // By default a minute: that long a pod may have more on its disk than it is allowed.
    volumeStatsAggPeriod: '10s',
    makeIPTablesUtilChains: false,
    registerNode: true,
    maxPods: 200,
    serializeImagePulls: false,
    // Loaded images have no registry to come back from, and a full disk of the developer is not the pods' fault.
    imageGCHighThresholdPercent: 100,
    evictionHard: {
      'memory.available': '0%',
      'nodefs.available': '0%',
      'imagefs.available': '0%',
      'nodefs.inodesFree': '0%',
    },
    kubeAPIQPS: 200,
    kubeAPIBurst: 400,
    eventRecordQPS: 0,
    clusterDNS: [],
    resolvConf: '',
    podLogsDir: join(stateDir, 'pod-logs'),
    volumePluginDir: join(stateDir, 'volume-plugins'),
  };
}

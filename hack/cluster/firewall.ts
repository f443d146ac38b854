import { join } from 'node:path';
import { type ApiAccess, apiRequest, waitUntil } from './api.ts';
import type { Binaries } from './binaries.ts';
import { inMachine, type Machine } from './machine.ts';
import type { Processes } from './processes.ts';

const role = 'kube-router';

/**
 * Starts what enforces NetworkPolicy, with rights to read what it needs and no more. It ends at once when its Node
 * object does not exist yet.
 */
export async function startFirewall(
  machine: Machine,
  nodeName: string,
  access: ApiAccess,
  stateDir: string,
  binaries: Binaries,
  processes: Processes,
): Promise<void> {
  await grantReading(access);
  await processes.start(
    role,
    [
      // It reads NODE_NAME before its own flag.
      ...['env', `NODE_NAME=${nodeName}`, binaries['kube-router']],
      `--kubeconfig=${join(stateDir, 'firewall.kubeconfig')}`,
      `--hostname-override=${nodeName}`,
      '--run-firewall=true',
      '--run-router=false',
      '--run-service-proxy=false',
      '--enable-cni=false',
      '--service-cluster-ip-range=10.96.0.0/16',
    ],
    { inside: machine.initPid },
  );
}

/** Ends it and takes its rules away: NetworkPolicies exist and nothing enforces them, the control of a security test. */
export async function pauseFirewall(machine: Machine, processes: Processes): Promise<void> {
  await processes.kill(role);
  // The machine's tables hold nothing but kube-router's rules, so empty tables are the state before it.
  const empty = '*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n';
  await inMachine(machine, ['iptables-restore'], empty);
  await inMachine(machine, ['ipset', 'destroy']);
}

/** Starts it again and waits until it filters. */
export async function resumeFirewall(machine: Machine, processes: Processes): Promise<void> {
  await processes.restart(role);
  await waitFirewall(machine, processes);
}

/** Waits until its rules stand in the machine's tables: policies that exist by then are enforced. */
export async function waitFirewall(machine: Machine, processes: Processes): Promise<void> {
  await waitUntil(
    async () => {
      if (!processes.alive(role)) throw new Error(`${role} ended; its log says:\n${processes.logTail(role)}`);
      return (await inMachine(machine, ['iptables', '-w', '-S'])).includes('-A FORWARD');
    },
    30_000,
    () => `${role} made no rules in 30 s; its log says:\n${processes.logTail(role)}`,
  );
}

async function grantReading(access: ApiAccess): Promise<void> {
  const watch = ['get', 'list', 'watch'];
  const name = 'kube-router';
  const create = async (kind: string, body: object) => {
    const path = `/apis/rbac.authorization.k8s.io/v1/${kind}`;
    const answer = await apiRequest(access, path, { method: 'POST', body });
    if (answer.status >= 300 && answer.status !== 409)
      throw new Error(`${kind} ${name}: ${answer.status} ${answer.body}`);
  };
  await create('clusterroles', {
    metadata: { name },
    rules: [
      { apiGroups: [''], resources: ['namespaces', 'pods', 'services', 'nodes', 'endpoints'], verbs: watch },
      { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: watch },
      { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: watch },
    ],
  });
  await create('clusterrolebindings', {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ kind: 'User', name, apiGroup: 'rbac.authorization.k8s.io' }],
  });
}

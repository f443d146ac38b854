import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { apiRequest } from '../../hack/cluster/api.ts';
import { attachCluster, type Cluster, removeCluster, startCluster } from '../../hack/cluster/cluster.ts';
import { startControlPlane } from '../../hack/cluster/control-plane.ts';
import { writeImage } from '../../hack/cluster/oci.ts';
import { shortId } from '../../hack/cluster/paths.ts';
import { isAlive, type ProcessRecord } from '../../hack/cluster/processes.ts';
import { run } from '../../hack/cluster/run.ts';
import { aNamespace, createNamespace, deleteNamespace, sandboxPod, sharedCluster } from './shared.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await sharedCluster();
});

describe('a sandbox pod under the restricted Pod Security level', () => {
  let namespace: string;
  beforeAll(async () => {
    namespace = await createNamespace(cluster, 'restricted');
    await startPods(cluster, namespace, sandboxPod('tools'));
  });
  afterAll(() => deleteNamespace(cluster, namespace));
  const inPod = (script: string) =>
    cluster.kubectl(['exec', '-n', namespace, 'tools', '--', 'sh', '-c', script]);

  test.each([
    ['sh', 'echo "$((6 * 7))"', '42'],
    ['bash', 'bash -c "echo {1..3}"', '1 2 3'],
    ['jq', `echo '{"a":[1,2]}' | jq -c .a`, '[1,2]'],
    ['python3', 'python3 -c "import json, ssl, sqlite3; print(json.dumps([6 * 7]))"', '[42]'],
    ['yq', `printf 'a: {b: 1}\\n' | yq -c .a`, '{"b":1}'],
    ['tar and gzip', 'echo hi > a && tar -czf a.tgz a && tar -xzOf a.tgz a', 'hi'],
    ['base64 and head', 'head -c 3 /dev/zero | base64', 'AAAA'],
    ['sha256sum', 'printf "" | sha256sum | cut -c1-8', 'e3b0c442'],
    ['pgrep', 'pgrep -x sleep | wc -l', '1'],
    ['ps', 'ps -o comm= -p 1', 'sh'],
    ['setsid and timeout', 'setsid -w timeout 5 echo done', 'done'],
    ['timeout', 'timeout 0.1 sleep 5; echo $?', '124'],
    ['grep, sed, awk, find', `find /etc/passwd | sed s,/etc/,, | grep -c pass | awk '{print $1}'`, '1'],
    ['the user', 'id -u; id -un; echo $HOME', '65532\nsandbox\n/tmp'],
    ['a read-only root', 'touch /x 2>/dev/null || echo refused', 'refused'],
  ])('answers: %s', async (_tool, script, answer) => {
    expect((await inPod(script)).trim()).toBe(answer);
  });

  test('hands the exit status of a command to kubectl exec', async () => {
    await expect(inPod('exit 42')).rejects.toMatchObject({ exitCode: 42 });
  });

  test('collects the processes that a killed command leaves behind', async () => {
    await inPod('setsid sh -c "sleep 0.3 & exit" & sleep 0.6');
    const zombies = async () => (await inPod('ps -eo stat= | grep -c Z || true')).trim();
    await expect.poll(zombies, { timeout: 60_000 }).toBe('0');
  });

  test('ends within its grace period when it is deleted', async () => {
    const own = await aNamespace(cluster);
    await startPods(cluster, own, { ...Object(sandboxPod('short')) });
    const startedAt = performance.now();
    await cluster.kubectl(['delete', 'pod', 'short', '-n', own, '--timeout=60s']);
    expect(performance.now() - startedAt).toBeLessThan(25_000);
  });
});

test('a pod that asks for more than the restricted level allows is refused', async () => {
  const namespace = await aNamespace(cluster, 'restricted');
  await expect(
    cluster.kubectl(['run', 'root', '-n', namespace, '--image=hummingbird.test/sandbox:1']),
  ).rejects.toThrow(/violates PodSecurity "restricted/);
});

test('a NetworkPolicy blocks what worked before, while it is enforced and only then', async () => {
  const namespace = await aNamespace(cluster);
  const serve = ['python3', '-m', 'http.server', '8080', '--directory', '/tmp'];
  await startPods(cluster, namespace, sandboxPod('server', { command: serve }), sandboxPod('client'));
  const status = ['get', 'pod', 'server', '-n', namespace, '-o', 'jsonpath={.status.podIP}'];
  const address = (await cluster.kubectl(status)).trim();
  const reaches = () => connects(cluster, namespace, 'client', address, 8080);
  const apiPort = Number(new URL(cluster.server).port);
  const reachesHost = () => connects(cluster, namespace, 'client', cluster.hostAddress, apiPort);
  await eventually(reaches, true);
  await eventually(reachesHost, true);

  const policy = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'no-egress' },
    spec: { podSelector: {}, policyTypes: ['Egress'] },
  };
  await cluster.kubectl(['create', '-n', namespace, '-f', '-'], JSON.stringify(policy));
  await eventually(reaches, false);
  await eventually(reachesHost, false);

  try {
    await cluster.pauseFirewall();
    await eventually(reaches, true);
  } finally {
    await cluster.resumeFirewall();
  }
  await eventually(reaches, false);
});

test('an image from an archive of our own runs', async () => {
  const namespace = await aNamespace(cluster, 'privileged');
  const scratch = mkdtempSync(join(tmpdir(), 'image-'));
  try {
    const archive = join(scratch, 'extra.tar');
    // kubectl is a static binary that is at hand.
    const content = { path: cluster.kubectlPath };
    const command = { Env: [], Entrypoint: ['/kubectl', 'version', '--client'] };
    writeImage(archive, 'hummingbird.test/extra:1', command, [
      { kind: 'file', name: 'kubectl', mode: 0o755, content },
    ]);
    await cluster.loadImage(archive);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  await cluster.kubectl([
    'run',
    'extra',
    '-n',
    namespace,
    '--image=hummingbird.test/extra:1',
    '--restart=Never',
  ]);
  const phase = '--for=jsonpath={.status.phase}=Succeeded';
  await cluster.kubectl(['wait', 'pod/extra', '-n', namespace, phase, '--timeout=60s']);
  expect(await cluster.kubectl(['logs', 'extra', '-n', namespace])).toContain('Client Version: v1.36');
});

test('a ServiceAccount is itself and may only what RBAC gives it', async () => {
  const namespace = await aNamespace(cluster);
  await cluster.kubectl(['create', 'serviceaccount', 'reader', '-n', namespace]);
  const kubeconfig = await cluster.kubeconfigFor(namespace, 'reader');
  const asReader = (args: readonly string[]) =>
    run([cluster.kubectlPath, `--kubeconfig=${kubeconfig}`, ...args]);
  const user = `system:serviceaccount:${namespace}:reader`;
  expect(await asReader(['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}'])).toBe(user);
  await expect(asReader(['get', 'pods'])).rejects.toThrow(/Forbidden/);
  const binding = ['create', 'rolebinding', 'reader', '-n', namespace, '--clusterrole=view'];
  await cluster.kubectl([...binding, `--serviceaccount=${namespace}:reader`]);
  expect((await asReader(['get', 'pods', '-o', 'name'])).trim()).toBe('');
});

test('nobody without a token or certificate may use the API server or the kubelet', async () => {
  const { access } = cluster.controlPlane;
  expect((await apiRequest({ ...access, token: 'wrong' }, '/api')).status).toBe(401);
  const address = await cluster.kubectl([
    ...['get', 'node', cluster.nodeName, '-o'],
    'jsonpath={.status.addresses[?(@.type=="InternalIP")].address}',
  ]);
  const kubelet = { server: `https://${address}:10250`, ca: access.ca, token: 'wrong' };
  expect((await apiRequest(kubelet, '/pods')).status).toBe(401);
});

test('a cluster that is stopped leaves no process, mount, interface, cgroup or file, and does not disturb another', async () => {
  const name = `gone-${process.pid}`;
  const own = await startCluster({ name, log: () => {} });
  const records = recordsOf(own.stateDir);
  try {
    const namespace = await createNamespace(own);
    await startPods(own, namespace, sandboxPod('a'));
    expect(records.length).toBeGreaterThanOrEqual(7);
    expect(records.filter((record) => !isAlive(record))).toEqual([]);
    expect(tracesOf(name, own.stateDir).length).toBeGreaterThanOrEqual(2);
    const [first, second] = [own, cluster].map((each) => each.hostAddress);
    expect(first).not.toBe(second);
  } finally {
    await own.stop();
  }
  expect(records.filter(isAlive)).toEqual([]);
  expect(processesNaming(own.stateDir)).toEqual([]);
  expect(existsSync(own.stateDir)).toBe(false);
  expect(tracesOf(name, own.stateDir)).toEqual([]);
  await cluster.kubectl(['get', 'node', cluster.nodeName]);
});

test('a cluster whose parts were killed is removed, or replaced, by its name alone', async () => {
  const name = `crash-${process.pid}`;
  const first = await startCluster({ name, log: () => {} });
  try {
    for (const role of ['kubelet', 'containerd', 'kube-apiserver'])
      await first.controlPlane.processes.kill(role);
    await expect(attachCluster(first.stateDir)).rejects.toThrow(/no running cluster/);
    const second = await startCluster({ name, log: () => {}, firewall: false });
    expect(await second.kubectl(['get', 'nodes', '-o', 'name'])).toContain('node/node1');
  } finally {
    await removeCluster(first.stateDir);
  }
  expect(tracesOf(name, first.stateDir)).toEqual([]);
});

test('a control plane alone survives kills of its API server, forgets history on demand and serves through a second one', async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'control-plane-'));
  const plane = await startControlPlane({ stateDir, log: () => {}, controllers: false });
  try {
    const first = await apiRequest(plane.access, '/api/v1/namespaces');
    const version: string = JSON.parse(first.body).metadata.resourceVersion;
    const body = { metadata: { name: 'made' } };
    expect((await apiRequest(plane.access, '/api/v1/namespaces', { method: 'POST', body })).status).toBe(201);
    await plane.killApiserver();
    await expect(apiRequest(plane.access, '/readyz')).rejects.toThrow(/ECONNREFUSED/);
    await plane.startApiserver();
    expect((await apiRequest(plane.access, '/api/v1/namespaces/made')).status).toBe(200);

    expect(await plane.compactEtcd()).toBeGreaterThan(Number(version));
    const second = await plane.startSecondApiserver();
    expect((await apiRequest(second.access, '/api/v1/namespaces/made')).status).toBe(200);
    await second.kill();
    expect((await apiRequest(plane.access, '/api/v1/namespaces/made')).status).toBe(200);
  } finally {
    await plane.stop();
    rmSync(stateDir, { recursive: true, force: true });
  }
  expect(processesNaming(stateDir)).toEqual([]);
});

async function startPods(on: Cluster, namespace: string, ...pods: readonly unknown[]): Promise<void> {
  for (const pod of pods) await on.kubectl(['create', '-n', namespace, '-f', '-'], JSON.stringify(pod));
  await on.kubectl(['wait', 'pod', '--all', '-n', namespace, '--for=condition=Ready', '--timeout=60s']);
}

/** Whether a TCP connection from inside the pod succeeds within two seconds. */
async function connects(
  on: Cluster,
  namespace: string,
  pod: string,
  host: string,
  port: number,
): Promise<boolean> {
  const script = `import socket; socket.create_connection(("${host}", ${port}), 2)`;
  return on.kubectl(['exec', '-n', namespace, pod, '--', 'python3', '-c', script]).then(
    () => true,
    () => false,
  );
}

async function eventually(question: () => Promise<boolean>, answer: boolean): Promise<void> {
  const end = Date.now() + 120_000;
  while ((await question()) !== answer) {
    if (Date.now() > end) throw new Error(`still ${!answer} after 120 s`);
  }
}

function recordsOf(stateDir: string): ProcessRecord[] {
  const stored: Record<string, ProcessRecord> = JSON.parse(
    readFileSync(join(stateDir, 'processes.json'), 'utf8'),
  );
  return Object.values(stored);
}

/** Pids whose command line mentions the path. */
function processesNaming(path: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(path);
    } catch {
      return false;
    }
  });
}

/** What the cluster has on the machine outside its state directory; other clusters may come and go meanwhile. */
function tracesOf(name: string, stateDir: string): string[] {
  const cgroups = readdirSync('/sys/fs/cgroup').map(
    (hierarchy) => `/sys/fs/cgroup/${hierarchy}/hummingbird-${name}`,
  );
  const paths = [`/sys/class/net/hb-${shortId(name)}`, `/sys/fs/cgroup/hummingbird-${name}`, ...cgroups];
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  return [...paths.filter((path) => existsSync(path)), ...mounts.filter((mount) => mount.includes(stateDir))];
}

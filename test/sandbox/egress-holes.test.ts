import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { inMachine, type Machine, readMachine } from '../../hack/cluster/machine.ts';
import { probeablePod } from '../../src/controllers/pool/egress/probeable.ts';
import { targetsFor } from '../../src/controllers/pool/egress/targets.ts';
import { METADATA_SERVICES } from '../../src/crds/sandbox-pool.ts';
import { NETWORK_POLICY, POD } from '../../src/kube/kinds.ts';
import { isUsable } from '../../src/kube/pod-state.ts';
import { probeEgress } from '../../src/sandbox/egress/probe.ts';
import type { ProbeRound } from '../../src/sandbox/port.ts';
import { type EgressWorld, egressWorld } from '../builders/egress.ts';
import { aPool, until } from '../builders/pool.ts';
import { sandboxPod } from '../cluster/shared.ts';

let world: EgressWorld;
let machine: Machine;
const addresses = new Map<string, string>();

beforeAll(async () => {
  world = await egressWorld();
  machine = readMachine(world.cluster.stateDir);
  const { namespace } = world;
  const shut = { podSelector: {}, policyTypes: ['Egress', 'Ingress'], egress: [], ingress: [] } as const;
  await world.kube.create(NETWORK_POLICY, {
    ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { namespace, name: 'shut' } },
    spec: { ...shut, policyTypes: [...shut.policyTypes] },
  });
  for (const name of ['inside', 'other']) await makePod(name);
  await until('both are shut in', async () => (await opened('inside')).length === 0, 240_000);
}, 300_000);
afterAll(() => world?.close());

/** A pod that the level `restricted` admits, with `changes` to its one container and to its spec. */
async function makePod(name: string, { container = {}, spec = {} }: PodChanges = {}): Promise<void> {
  const { namespace, kube, cluster } = world;
  const pod = JSON.parse(JSON.stringify(sandboxPod(name, { labels: { app: name } })));
  Object.assign(pod.spec, spec);
  Object.assign(pod.spec.containers[0], container);
  await cluster.kubectl(['create', '-n', namespace, '-f', '-'], JSON.stringify(pod));
  const ready = await until(`pod ${name} is ready`, async () => {
    const found = await kube.get(POD, { namespace, name });
    return found !== undefined && isUsable(found) ? found : undefined;
  });
  addresses.set(name, ready.status?.podIP ?? '');
}
interface PodChanges {
  readonly container?: object;
  readonly spec?: object;
}

async function probe(name: string): Promise<ProbeRound> {
  const { namespace, kube, cluster, sandbox } = world;
  const [own, other] = await Promise.all(
    [name, 'other'].map((pod) => kube.get(POD, { namespace, name: pod })),
  );
  if (own === undefined || other === undefined) throw new Error(`pod ${name} or the other one is gone`);
  const server = new URL(cluster.server);
  const pool = aPool('any', namespace);
  const targets = targetsFor(
    probeablePod(own),
    {
      ...pool,
      spec: { ...pool.spec, egressProbe: { ...pool.spec.egressProbe, targets: [...METADATA_SERVICES] } },
    },
    [probeablePod(other)],
    { apiServers: [{ address: server.hostname, port: Number(server.port) }], nameServers: [], pods: [] },
  );
  const result = await probeEgress(sandbox(name), { targets, rounds: 1, gapMs: 0 });
  if (result.kind === 'CannotProbe') throw new Error(result.why);
  return result.rounds[0] ?? [];
}

const opened = async (name: string) => (await probe(name)).filter(({ open }) => open);

/** Until no hole is left that the firewall is to shut. */
const shutIn = (name: string) =>
  until(
    `pod ${name} is shut in`,
    async () => (await opened(name)).every(({ subject }) => INSIDE.has(subject)),
    240_000,
  );

/** Additional to the policy that shuts everything, as somebody's mistake would be. */
async function allow(name: string, spec: object): Promise<void> {
  const { namespace, kube, cluster } = world;
  const policy = { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name }, spec };
  await cluster.kubectl(['create', '-n', namespace, '-f', '-'], JSON.stringify(policy));
  onTestFinished(async () => void (await kube.delete(NETWORK_POLICY, { namespace, name })));
}

const egressTo = (cidr: string, port: number, protocol = 'TCP') => ({
  podSelector: { matchLabels: { app: 'inside' } },
  policyTypes: ['Egress'],
  egress: [{ to: [{ ipBlock: { cidr } }], ports: [{ protocol, port }] }],
});

/** A process in the node's network: what is at its addresses. */
async function serve(script: string): Promise<void> {
  const enter = ['-t', String(machine.initPid), '-n', '--', process.execPath, '-e', script];
  const child: ChildProcess = spawn('nsenter', enter, { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill());
  if (child.stdout !== null) await once(child.stdout, 'data');
}

/** What a network of two families gives a pod: an IPv6 address and a route, here to one address of the node only. */
async function routeIPv6(pod: string, destination: string): Promise<void> {
  const here = (line: string) => inMachine(machine, line.split(' '));
  const names = (await here('ls /run/netns')).split('\n').filter((name) => name !== '');
  const shown = await Promise.all(
    names.map((name) => here(`ip -n ${name} -4 addr show dev eth0`).catch(() => '')),
  );
  const netns = names[shown.findIndex((text) => text.includes(` ${pod}/`))];
  const gateway = /inet6 (fe80\S+)\//.exec(await here('ip -6 addr show dev pods0'))?.[1];
  const own = 'fd00:213::2';
  await here(`ip -n ${netns} -6 addr add ${own}/128 dev eth0 nodad`);
  await here(`ip -n ${netns} -6 route add ${destination} via ${gateway} dev eth0`);
  await here(`ip -6 route add ${own} dev pods0`);
  const rules = [`-i pods0 -p ipv6-icmp -j ACCEPT`, `-i pods0 -d ${destination} -j ACCEPT`];
  for (const rule of rules) await here(`ip6tables -I INPUT ${rule}`);
  onTestFinished(async () => {
    for (const rule of rules) await here(`ip6tables -D INPUT ${rule}`);
    await here(`ip -n ${netns} -6 route del ${destination} dev eth0`);
    await here(`ip -n ${netns} -6 addr del ${own}/128 dev eth0`);
  });
}

const TCP = (address: string, port: number) =>
  `require('node:net').createServer((socket) => socket.end()).listen(${port}, '${address}', () => console.log('up'))`;
const DNS = (address: string) =>
  `const socket = require('node:dgram').createSocket('udp4');
   socket.on('message', (question, from) => socket.send(question, from.port, from.address));
   socket.bind(53, '${address}', () => console.log('up'))`;

describe('one hole alone is found, and nothing else', { timeout: 300_000 }, () => {
  const found = async (name: string, subject: string, where: RegExp, detail: RegExp) => {
    // What an earlier test has opened may take a moment to be shut again.
    const findings = await until(
      `${subject} is open, and nothing else`,
      async () => {
        const now = await opened(name);
        return now.length > 0 && now.every((finding) => finding.subject === subject) ? now : undefined;
      },
      240_000,
    );
    expect(findings[0]).toMatchObject({
      where: expect.stringMatching(where),
      detail: expect.stringMatching(detail),
    });
  };

  it('the API server', async () => {
    const { hostname, port } = new URL(world.cluster.server);
    await allow('api-server', egressTo(`${hostname}/32`, Number(port)));
    await found('inside', 'ApiServer', /\/tcp$/, /^connected$/);
  });
  it('the kubelet', async () => {
    await allow('kubelet', egressTo(`${machine.nodeAddress}/32`, 10250));
    await found('inside', 'Kubelet', /:10250\/tcp$/, /^connected$/);
  });
  it('DNS, over UDP only', async () => {
    await serve(DNS(machine.nodeAddress));
    await allow('dns', egressTo(`${machine.nodeAddress}/32`, 53, 'UDP'));
    await found('inside', 'Dns', /:53\/udp$/, /^answered$/);
  });
  it('a metadata service', async () => {
    await serve(TCP('169.254.169.254', 80));
    await allow('metadata', egressTo('169.254.169.254/32', 80));
    await found('inside', 'Metadata', /^169\.254\.169\.254:80/, /^connected$/);
  });
  it('a metadata service by its IPv6 address', async () => {
    await serve(TCP('fd00:ec2::254', 80));
    await routeIPv6(addresses.get('inside') ?? '', 'fd00:ec2::254');
    await found('inside', 'Metadata', /^\[fd00:ec2::254\]:80/, /^connected$/);
  });
  it('another pod, where nothing listens', async () => {
    await allow('out', egressTo(`${addresses.get('other')}/32`, 8080));
    await allow('in', {
      podSelector: { matchLabels: { app: 'other' } },
      policyTypes: ['Ingress'],
      ingress: [{ from: [{ podSelector: { matchLabels: { app: 'inside' } } }] }],
    });
    await found('inside', 'Pod', /:8080\/tcp$/, /^refused by the host that it reached$/);
  });
  it('IPv6 on the same link', async () => {
    await inMachine(machine, ['ip6tables', '-I', 'INPUT', '-i', 'pods0', '-j', 'ACCEPT']);
    onTestFinished(async () => {
      await inMachine(machine, ['ip6tables', '-D', 'INPUT', '-i', 'pods0', '-j', 'ACCEPT']);
    });
    await found('inside', 'IPv6', /^\[fe80::.*%eth0\]:10250\/tcp$/, /^connected$/);
  });
  it('a token of the ServiceAccount', async () => {
    await makePod('token', { spec: { automountServiceAccountToken: true } });
    await shutIn('token');
    const subjects = new Set((await opened('token')).map(({ subject }) => subject));
    // The token is a volume that Kubernetes fills as well.
    expect(subjects).toEqual(new Set(['ServiceAccountToken', 'Volume']));
  });
  it('a Secret that is mounted elsewhere', async () => {
    const { cluster, namespace } = world;
    await cluster.kubectl(['create', 'secret', 'generic', 'creds', '-n', namespace, '--from-literal=a=b']);
    await makePod('mounted', {
      spec: {
        volumes: [
          { name: 'tmp', emptyDir: {} },
          { name: 'creds', secret: { secretName: 'creds' } },
        ],
      },
      container: {
        volumeMounts: [
          { name: 'tmp', mountPath: '/tmp' },
          { name: 'creds', mountPath: '/opt/creds' },
        ],
      },
    });
    await shutIn('mounted');
    await found('mounted', 'Volume', /^\/opt\/creds$/, /mounted/);
  });
  it('a secret in the environment, of the command and of the first process; its value is not told', async () => {
    await makePod('variable', {
      container: {
        env: [
          { name: 'DEPLOY_TOKEN', value: 'canary-0001' },
          { name: 'DATABASE', value: 'postgres://app:canary-0002@db/app' },
          { name: 'HARMLESS', value: 'yes' },
        ],
      },
    });
    await shutIn('variable');
    const findings = await opened('variable');
    expect(findings.map(({ subject, where, detail }) => [subject, where, detail])).toEqual([
      ['Environment', 'environment', 'holds DATABASE, DEPLOY_TOKEN'],
      ['Environment', '/proc/1/environ', 'holds DATABASE, DEPLOY_TOKEN'],
    ]);
    expect(JSON.stringify(findings)).not.toContain('canary');
  });
});

/** What no network policy has to do with. */
const INSIDE: ReadonlySet<string> = new Set(['ServiceAccountToken', 'Volume', 'Environment']);

import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apply } from '../../hack/operator/install.ts';
import type { ResourceKind } from '../../src/crds/meta.ts';
import { SANDBOX_POOLS, type SandboxPool } from '../../src/crds/sandbox-pool.ts';
import { createClient } from '../../src/kube/client.ts';
import { connect } from '../../src/kube/config.ts';
import { NETWORK_POLICY, SECRET } from '../../src/kube/kinds.ts';
import {
  VIRTUAL_MACHINE_INSTANCE,
  VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
  type VirtualMachineInstance,
} from '../../src/kube/kubevirt/kinds.ts';
import { sshKeyPair } from '../../src/kube/kubevirt/ssh-key.ts';
import { createTransport, type Transport } from '../../src/kube/transport.ts';
import { until } from '../builders/pool.ts';
import { aCliWorld, type CliWorld, PROJECT as LOCAL_PROJECT } from '../cli/world.ts';
import { sharedCluster } from '../cluster/shared.ts';
import { type KubeVirt, startKubeVirt } from '../fakes/kubevirt/stand-in.ts';
import type { Script } from '../fakes/openai/server.ts';
import { aWorld, type World } from './world.ts';

/** Runs a command once, then tells what it was answered. */
const script: Script = ({ messages }) => {
  const last = messages.at(-1);
  if (last?.role === 'tool') return { text: `Seen: ${String(last.content)}` };
  const asked = JSON.stringify(last);
  const command = asked.includes('Slowly')
    ? 'sleep 55'
    : asked.includes('Again')
      ? 'cat /tmp/data/kept'
      : 'echo kept for later > /tmp/data/kept; echo ran in $(hostname)';
  return { toolCalls: [{ name: 'sandbox_exec', args: { command } }] };
};

const KEY = sshKeyPair(generateKeyPairSync('ed25519').privateKey, 1);

describe('an operator with a pool of machines', () => {
  let world: World;
  let local: CliWorld;
  let kubevirt: KubeVirt;
  let transport: Transport;
  let kube: ReturnType<typeof createClient>;

  beforeAll(async () => {
    const cluster = await sharedCluster();
    world = await aWorld(cluster, { replicas: 0, scripts: { 'test-script': script } });
    transport = createTransport(connect({ kind: 'Files', paths: [cluster.kubeconfigPath] }));
    kube = createClient(transport);
    const namespace = world.namespaces.sandboxes;
    kubevirt = await startKubeVirt({ kube, transport, namespace });
    await apply(
      cluster,
      {
        ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'vm-key', namespace } },
        stringData: { id: KEY.privateKey },
      },
      {
        apiVersion: 'hummingbird.dev/v1alpha1',
        kind: 'SandboxPool',
        metadata: { name: 'machines', namespace },
        spec: {
          replicas: 2,
          backend: 'VirtualMachineInstance',
          virtualMachineInstance: {
            containerDisk: 'registry.test/sandbox-vm:1',
            cpuCores: 1,
            memory: '512Mi',
            ssh: { privateKeySecretRef: { name: 'vm-key', key: 'id' } },
          },
        },
      },
    );
    await world.operator.waitReady();
    local = await aCliWorld({ 'test-script': script });
  });
  afterAll(async () => {
    await local?.close();
    await kubevirt?.close();
    await world?.close();
    await transport?.close();
  });

  const pool = async (): Promise<SandboxPool | undefined> =>
    kube.get(SANDBOX_POOLS, { namespace: world.namespaces.sandboxes, name: 'machines' });
  const ready = async (count: number) => {
    const look = async () => (await pool())?.status?.ready === count;
    await until(`${count} machines are ready`, look, 90_000).catch(async (error: unknown) => {
      const status = JSON.stringify((await pool())?.status, null, 1);
      throw new Error(`${String(error)}\n${status}\n${world.operator.log().slice(-5_000)}`);
    });
  };
  const machines = async (selector = ''): Promise<readonly VirtualMachineInstance[]> => {
    const namespace = world.namespaces.sandboxes;
    return (await kube.list(VIRTUAL_MACHINE_INSTANCE, { namespace, labelSelector: selector })).items;
  };
  const inMachines = () => ({
    sandbox: { poolRef: { name: 'machines', namespace: world.namespaces.sandboxes } },
  });
  const toolAnswers = (): readonly string[] =>
    world.openai.requests.flatMap(({ messages }) =>
      messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content)),
    );

  it('hands them out once a command over SSH has shown that they reach no network', async () => {
    await ready(2);
    const status = (await pool())?.status;
    const told = status?.conditions?.map((one) => `${one.type} ${one.status}`);
    expect(told).toContain('EgressBlocked True');
    expect(status?.selector).toBe('hummingbird.dev/pool=machines,hummingbird/role=standby');
    for (const { metadata } of await machines())
      expect(metadata.annotations?.['hummingbird.dev/ssh-host-key']).toMatch(/^ssh-ed25519 /);
  });

  it('lets a run work in one, and a reply find it as it was left', async () => {
    await world.startRun('first', inMachines());
    const first = await world.waitEnd('first');
    expect(first.status).toMatchObject({
      phase: 'Succeeded',
      sandbox: { kind: 'VirtualMachineInstancePool', namespace: world.namespaces.sandboxes },
    });
    expect(world.notes().at(-1)).toContain(`ran in ${first.status?.sandbox?.name}`);
    await until('it lingers, and another one stands by', async () => {
      const status = (await pool())?.status;
      return status?.lingering === 1 && status.ready === 2;
    });
    await world.startRun('second', {
      ...inMachines(),
      ...{ sessionRef: { name: first.metadata.uid }, message: 'Again' },
    });
    const second = await world.waitEnd('second');
    expect(second.status?.sandbox?.name).toBe(first.status?.sandbox?.name);
    expect(toolAnswers().at(-1)).toContain('kept for later');
  });

  it('BR-40: tells the model of a machine that is deleted during the run, which ends with what it has, saved', async () => {
    await ready(2);
    await world.startRun('lost', { ...inMachines(), message: 'Slowly' });
    const running = await world.waitRun('lost', 'a command', ({ status }) => status?.phase === 'Running');
    const name = running.status?.sandbox?.name ?? '';
    await until('the command runs', async () =>
      (await kubevirt.machine(name).log()).includes('Starting session'),
    );
    await kube.delete(VIRTUAL_MACHINE_INSTANCE, { namespace: world.namespaces.sandboxes, name });
    const { status } = await world.waitEnd('lost');
    expect(status?.phase).toBe('Succeeded');
    expect(toolAnswers().at(-1)).toMatch(/sandbox.*lost|lost.*sandbox/i);
    expect(status?.conditions?.find(({ type }) => type === 'SessionSaved')?.status).toBe('True');
  });

  it('BR-43: takes the machine of a run that is deleted, and no other, and owns nothing across namespaces', async () => {
    await ready(2);
    await world.startRun('deleted', { ...inMachines(), message: 'Slowly' });
    const run = await world.waitRun('deleted', 'the loop', ({ status }) => status?.phase === 'Running');
    const own = `hummingbird.dev/run=${run.metadata.uid}`;
    expect(await machines(own)).toHaveLength(1);
    const others = (await machines()).filter(({ metadata }) => metadata.name !== run.status?.sandbox?.name);
    const kinds: readonly ResourceKind[] = [
      ...[VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, SECRET, NETWORK_POLICY],
    ];
    for (const kind of kinds) {
      const { items } = await kube.list(kind, { namespace: world.namespaces.sandboxes });
      const owners = items.flatMap(({ metadata }) => metadata.ownerReferences ?? []);
      expect(owners.map((owner) => owner.kind)).not.toContain('AgentRun');
    }
    await world.kubectl(['delete', 'agentrun/deleted', '-n', world.namespaces.agents, '--timeout=60s']);
    await until('its machine is gone', async () => (await machines(own)).length === 0);
    const left = new Set((await machines()).map(({ metadata }) => metadata.uid));
    expect(others.filter(({ metadata }) => !left.has(metadata.uid))).toEqual([]);
  });

  it('follows kubectl scale', async () => {
    await world.kubectl([...['scale', 'spool/machines', '-n', world.namespaces.sandboxes, '--replicas=1']]);
    await ready(1);
  });

  it('is claimed at the command line too, and a machine of its own is made and removed there', async () => {
    const base = ['run', '--event', JSON.stringify({ project: LOCAL_PROJECT, iid: 1 })];
    const there = ['--kubeconfig', world.cluster.kubeconfigPath, '--namespace', world.namespaces.sandboxes];
    const pooled = await local.start([...base, ...there, '--sandbox', 'kubevirtpool', '--pool', 'machines'])
      .ended;
    expect({ code: pooled.code, stderr: pooled.stderr }).toMatchObject({ code: 0 });
    expect(pooled.stderr).toContain('sandbox: VirtualMachineInstancePool ');
    expect(pooled.stdout).toContain('ran in machines');
    const own = await local.start([
      ...base,
      ...there,
      '--sandbox',
      'kubevirt',
      '--image',
      'registry.test/vm:1',
    ]).ended;
    expect({ code: own.code, stderr: own.stderr }).toMatchObject({ code: 0 });
    expect(own.stdout).toContain('ran in hb-sandbox-');
    await until('none is left', async () => (await machines('!hummingbird.dev/pool')).length === 0);
  });

  it('says nothing of the private key to anybody', async () => {
    const body = KEY.privateKey.split('\n').filter((line) => line.length > 30 && !line.startsWith('---'));
    const { agents } = world.namespaces;
    const said = [
      world.operator.log(),
      JSON.stringify(world.openai.requests),
      world.notes().join('\n'),
      await world.kubectl(['get', 'agentruns,agentsessions,events', '-n', agents, '-o', 'yaml']),
      JSON.stringify(await machines()),
    ].join('\n');
    expect(body.length).toBeGreaterThan(2);
    for (const line of body) expect(said).not.toContain(line);
  });
});

import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPoolController } from '../../src/controllers/pool/controller.ts';
import { ANNOTATIONS, LABELS } from '../../src/crds/meta.ts';
import { SANDBOX_POOLS, type SandboxPool } from '../../src/crds/sandbox-pool.ts';
import type { Controller } from '../../src/kube/controller.ts';
import { POD, SECRET } from '../../src/kube/kinds.ts';
import {
  VIRTUAL_MACHINE_INSTANCE,
  VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
  type VirtualMachineInstance,
} from '../../src/kube/kubevirt/kinds.ts';
import { sshKeyPair } from '../../src/kube/kubevirt/ssh-key.ts';
import { silentLogger } from '../../src/kube/log.ts';
import { type MachinePool, machinePool } from '../../src/sandbox/pool/vmi-pool.ts';
import { type ExecResult, SandboxLostError, type SandboxRequest } from '../../src/sandbox/port.ts';
import { recording } from '../builders/kube-access.ts';
import { MACHINE, type MachineWorld, machineWorld } from '../builders/machines.ts';
import { aPool, until } from '../builders/pool.ts';
import type { Faults } from '../fakes/kubevirt/stand-in.ts';

/** What goes wrong with the machines of a pool, by the beginning of their names, in the order in which they come. */
const faults = new Map<string, Faults[]>();

let world: MachineWorld;
let controller: Controller;
const providers: MachinePool[] = [];
beforeAll(async () => {
  world = await machineWorld(({ metadata }) => {
    const [, list] = [...faults].find(([prefix]) => metadata.name?.startsWith(prefix)) ?? [];
    return list?.shift() ?? {};
  });
  const [pools, pods] = await Promise.all([
    world.informer(SANDBOX_POOLS, namespace()),
    world.informer(POD, namespace()),
  ]);
  const { kube, events } = world;
  const operator = { namespace: world.namespaces.agents, labels: { app: 'operator' } };
  controller = createPoolController({ kube, events, pools, pods, operator });
  await controller.start();
  await kube.create(SECRET, aKey('vm-key'));
});
afterAll(async () => {
  await Promise.all(providers.map((provider) => provider.close()));
  await controller?.stop();
  await world?.close();
});

const namespace = () => world.namespaces.sandboxes;
const aKey = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: namespace() },
  stringData: { id: sshKeyPair(generateKeyPairSync('ed25519').privateKey, 1).privateKey },
});

function aMachinePool(name: string, replicas: number): SandboxPool {
  const { spec, ...pool } = aPool(name, namespace(), { replicas });
  const { pod: _pod, ...others } = spec;
  return {
    ...pool,
    spec: {
      ...others,
      backend: 'VirtualMachineInstance',
      virtualMachineInstance: {
        ...MACHINE,
        ssh: { user: 'sandbox', privateKeySecretRef: { name: 'vm-key', key: 'id' } },
      },
      egressProbe: { ...spec.egressProbe, enabled: false },
    },
  };
}

/** As one operator process has it. */
function aProvider(kube = world.kube): MachinePool {
  const provider = machinePool({ kube, logger: silentLogger, tempDir: world.tempDir, env: process.env });
  providers.push(provider);
  return provider;
}

function aRequest(pool: string, rest: Partial<SandboxRequest> = {}): SandboxRequest {
  const runUid = crypto.randomUUID();
  return {
    ...{ runUid, runName: `run-${runUid.slice(0, 8)}`, runNamespace: world.namespaces.agents },
    ...{ workflow: 'analyze', pool: { namespace: namespace(), name: pool }, epoch: 1, labels: {} },
    reapBy: new Date(Date.now() + 600_000),
    ...rest,
  };
}

const claimed = async (provider: MachinePool, request: SandboxRequest) => {
  const result = await provider.claim(request);
  if (result.kind !== 'Claimed') throw new Error(`${result.kind}: ${result.message}`);
  return result.sandbox;
};
const status = async (name: string) =>
  (await world.kube.get(SANDBOX_POOLS, { namespace: namespace(), name }))?.status;
const machinesOf = async (selector: string): Promise<readonly VirtualMachineInstance[]> =>
  (await world.kube.list(VIRTUAL_MACHINE_INSTANCE, { namespace: namespace(), labelSelector: selector }))
    .items;
const filled = async (name: string, replicas: number) => {
  await world.kube.create(SANDBOX_POOLS, aMachinePool(name, replicas));
  await until(`${name} is full`, async () => (await status(name))?.ready === replicas);
};
const text = (result: ExecResult) => Buffer.from(result.stdout).toString();

describe('a pool of machines', () => {
  it('asks for exactly what KubeVirt’s API knows', async () => {
    await filled('warm', 2);
    const set = await world.kube.get(VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, {
      ...{ namespace: namespace(), name: 'warm' },
    });
    const [machine] = await machinesOf(`${LABELS.pool}=warm`);
    // A field that the API server does not know would have been pruned on the way.
    expect(machine?.spec).toEqual(set?.spec.template.spec);
    expect(machine?.spec.domain.devices.disks).toHaveLength(2);
    expect(machine?.spec.volumes[1]).toMatchObject({ secret: { secretName: 'warm-ssh-pubkeys' } });
    expect(machine?.spec.evictionStrategy).toBe('None');
    expect(await status('warm')).toMatchObject({ replicas: 2, ready: 2, claimed: 0 });
  });

  it('BR-39: is claimed by one guarded patch, and the set makes another machine and does not take this one back', async () => {
    const { kube, calls } = recording(world.kube);
    const request = aRequest('warm');
    const provider = aProvider(kube);
    const sandbox = await claimed(provider, request);
    const patches = calls.filter(({ verb }) => verb === 'patch');
    expect(patches).toHaveLength(1);
    expect(patches[0]?.patch).toMatchObject({
      body: {
        metadata: { uid: expect.any(String), resourceVersion: expect.any(String), ownerReferences: null },
      },
    });
    await sandbox.start();
    expect(text(await sandbox.exec('echo in the machine'))).toBe('in the machine\n');
    await until('another one stands by', async () => {
      const now = await status('warm');
      return now?.ready === 2 && now.claimed === 1;
    });
    const [own] = await machinesOf(`${LABELS.run}=${request.runUid}`);
    expect(own?.metadata.ownerReferences).toBeUndefined();
    expect(own?.metadata.annotations?.[ANNOTATIONS.hostKey]).toMatch(/^ssh-ed25519 /);
    await until('it is released', () => provider.release(request.runUid, namespace()));
  });

  it('BR-37: gives two runs two machines, also when they ask two processes at once', async () => {
    const providers = [aProvider(), aProvider()] as const;
    const requests = [aRequest('warm'), aRequest('warm')] as const;
    await until('two stand by', async () => (await status('warm'))?.ready === 2);
    const [one, two] = await Promise.all([
      claimed(providers[0], requests[0]),
      claimed(providers[1], requests[1]),
    ]);
    expect(one?.ref.name).not.toBe(two?.ref.name);
    for (const [at, request] of requests.entries())
      await until('it is released', () =>
        (providers[at] ?? providers[0]).release(request.runUid, namespace()),
      );
  });

  it('is known again by another process: the host key of the first contact counts', async () => {
    await until('one stands by', async () => ((await status('warm'))?.ready ?? 0) > 0);
    const request = aRequest('warm');
    const first = await claimed(aProvider(), request);
    await first.start();
    await first.exec('echo kept >/tmp/data/file');
    const other = aProvider();
    const found = await other.find(request.runUid, namespace());
    expect(found && text(await found.exec('cat /tmp/data/file'))).toBe('kept\n');
    await world.kubevirt.machine(first.ref.name).replace();
    const third = await aProvider().find(request.runUid, namespace());
    await expect(third?.exec('true')).rejects.toBeInstanceOf(SandboxLostError);
    await until('it is released', () => other.release(request.runUid, namespace()));
  });

  it('BR-40: of machines that failed, ended and run, the one that runs is claimed; then it is deleted', async () => {
    const pool = `ends-${randomBytes(2).toString('hex')}`;
    faults.set(pool, [{ phase: 'Failed' }, { phase: 'Succeeded' }]);
    // Nobody removes what has ended here: no controller knows the pool.
    const labels = { [LABELS.pool]: pool, [LABELS.role]: 'standby' };
    const [template] = await machinesOf(`${LABELS.pool}=warm`);
    for (const name of ['v1', 'v2', 'v3'])
      await world.kube.create(VIRTUAL_MACHINE_INSTANCE, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        metadata: {
          ...{ name: `${pool}-${name}`, namespace: namespace(), labels },
          annotations: { ...template?.metadata.annotations },
        },
        spec: template?.spec ?? Object(),
      });
    const phases = async () => (await machinesOf(`${LABELS.pool}=${pool}`)).map((one) => one.status?.phase);
    await until(
      'all three are there',
      async () => (await phases()).toSorted().join() === 'Failed,Running,Succeeded',
    );
    const running = (await machinesOf(`${LABELS.pool}=${pool}`)).find(
      (one) => one.status?.phase === 'Running',
    );
    await until('it has an address', async () => {
      const seen = await world.kube.get(VIRTUAL_MACHINE_INSTANCE, {
        ...{ namespace: namespace(), name: running?.metadata.name ?? '' },
      });
      return seen?.status?.interfaces?.[0]?.ipAddress !== undefined;
    });
    const provider = aProvider();
    const request = aRequest(pool);
    const sandbox = await claimed(provider, request);
    expect(sandbox.ref.name).toBe(running?.metadata.name);
    await sandbox.start();
    const ended = sandbox.exec('sleep 60').catch((error: unknown) => error);
    await until('it runs', async () => text(await sandbox.exec('pgrep -x sleep | wc -l')).trim() === '1');
    await world.kube.delete(VIRTUAL_MACHINE_INSTANCE, { namespace: namespace(), name: sandbox.ref.name });
    expect(await ended).toBeInstanceOf(SandboxLostError);
    expect(String(await ended)).toMatch(/does not exist any more|is being deleted/);
    faults.delete(pool);
  });

  it('replaces its machines one after the other when its key or template changes', async () => {
    const before = new Set((await machinesOf(`${LABELS.pool}=warm`)).map(({ metadata }) => metadata.uid));
    await world.kube.patch(
      SANDBOX_POOLS,
      { namespace: namespace(), name: 'warm' },
      { type: 'merge', body: { spec: { virtualMachineInstance: { cpuCores: 2 } } } },
    );
    await until('all are new', async () => {
      const now = await machinesOf(`${LABELS.pool}=warm,${LABELS.role}=standby`);
      return (
        now.length === 2 &&
        now.every(({ metadata, spec }) => !before.has(metadata.uid) && spec.domain.cpu?.cores === 2) &&
        (await status('warm'))?.conditions?.find(({ type }) => type === 'Progressing')?.reason === 'Complete'
      );
    });
  });

  it.each([
    ['there is no such Secret', 'KeyNotFound', undefined],
    ['it is no private key', 'KeyUnusable', 'not a key'],
  ])('says why it makes none: %s', async (_what, reason, value) => {
    const name = `bad-${reason.toLowerCase()}`;
    if (value !== undefined) await world.kube.create(SECRET, { ...aKey(name), stringData: { id: value } });
    const pool = aMachinePool(name, 1);
    const { virtualMachineInstance } = pool.spec;
    if (virtualMachineInstance === undefined) throw new Error('a pool of machines');
    await world.kube.create(SANDBOX_POOLS, {
      ...pool,
      spec: {
        ...pool.spec,
        virtualMachineInstance: {
          ...virtualMachineInstance,
          ssh: { user: 'sandbox', privateKeySecretRef: { name, key: 'id' } },
        },
      },
    });
    await until('the condition tells it', async () =>
      (await status(name))?.conditions?.some((one) => one.type === 'Ready' && one.reason === reason),
    );
  });
});

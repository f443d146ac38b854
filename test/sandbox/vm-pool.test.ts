import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ANNOTATIONS, LABELS } from '../../src/crds/meta.ts';
import { SANDBOX_POOLS } from '../../src/crds/sandbox-pool.ts';
import { SECRET } from '../../src/kube/kinds.ts';
import {
  VIRTUAL_MACHINE_INSTANCE,
  VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
} from '../../src/kube/kubevirt/kinds.ts';
import type { MachinePool } from '../../src/sandbox/pool/vmi-pool.ts';
import { type ExecResult, SandboxLostError, type SandboxRequest } from '../../src/sandbox/port.ts';
import { recording } from '../builders/kube-access.ts';
import { type MachinePoolWorld, machinePoolWorld } from '../builders/machine-pools.ts';
import { until } from '../builders/pool.ts';
import type { Faults } from '../fakes/kubevirt/stand-in.ts';

/** What goes wrong with the machines of a pool, by the beginning of their names, in the order in which they come. */
const faults = new Map<string, Faults[]>();

let world: MachinePoolWorld;
beforeAll(async () => {
  world = await machinePoolWorld(({ metadata }) => {
    const [, list] = [...faults].find(([prefix]) => metadata.name?.startsWith(prefix)) ?? [];
    return list?.shift() ?? {};
  });
});
afterAll(() => world?.close());

/** The pool's status may be two seconds old: what it calls ready may be claimed by then. */
const claimed = (provider: MachinePool, request: SandboxRequest) =>
  until('a machine is free', async () => {
    const result = await provider.claim(request);
    if (result.kind === 'Unavailable') throw new Error(result.message);
    return result.kind === 'Claimed' && result.sandbox;
  });
const text = (result: ExecResult) => Buffer.from(result.stdout).toString();

describe('a pool of machines', () => {
  it('asks for exactly what KubeVirt’s API knows', async () => {
    await world.filled('warm', 2);
    const set = await world.kube.get(VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, {
      ...{ namespace: world.namespace, name: 'warm' },
    });
    const [machine] = await world.machines(`${LABELS.pool}=warm`);
    // A field that the API server does not know would have been pruned on the way.
    expect(machine?.spec).toEqual(set?.spec.template.spec);
    expect(machine?.spec.domain.devices.disks).toHaveLength(2);
    expect(machine?.spec.volumes[1]).toMatchObject({ secret: { secretName: 'warm-ssh-pubkeys' } });
    expect(machine?.spec.evictionStrategy).toBe('None');
    expect(await world.status('warm')).toMatchObject({ replicas: 2, ready: 2, claimed: 0 });
  });

  it('BR-39: is claimed by one guarded patch, and the set makes another machine and does not take this one back', async () => {
    const { kube, calls } = recording(world.kube);
    const request = world.aRequest('warm');
    const provider = world.provider(kube);
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
      const now = await world.status('warm');
      return now?.ready === 2 && now.claimed === 1;
    });
    const [own] = await world.machines(`${LABELS.run}=${request.runUid}`);
    expect(own?.metadata.ownerReferences).toBeUndefined();
    expect(own?.metadata.annotations?.[ANNOTATIONS.hostKey]).toMatch(/^ssh-ed25519 /);
    await until('it is released', () => provider.release(request.runUid, world.namespace));
  });

  it('BR-37: gives two runs two machines, also when they ask two processes at once', async () => {
    const providers = [world.provider(), world.provider()] as const;
    const requests = [world.aRequest('warm'), world.aRequest('warm')] as const;
    await until('two stand by', async () => (await world.status('warm'))?.ready === 2);
    const [one, two] = await Promise.all([
      claimed(providers[0], requests[0]),
      claimed(providers[1], requests[1]),
    ]);
    expect(one?.ref.name).not.toBe(two?.ref.name);
    for (const [at, request] of requests.entries())
      await until('it is released', () =>
        (providers[at] ?? providers[0]).release(request.runUid, world.namespace),
      );
  });

  it('is known again by another process: the host key of the first contact counts', async () => {
    await until('one stands by', async () => ((await world.status('warm'))?.ready ?? 0) > 0);
    const request = world.aRequest('warm');
    const first = await claimed(world.provider(), request);
    await first.start();
    await first.exec('echo kept >/tmp/data/file');
    const other = world.provider();
    const found = await other.find(request.runUid, world.namespace);
    expect(found && text(await found.exec('cat /tmp/data/file'))).toBe('kept\n');
    await world.kubevirt.machine(first.ref.name).replace();
    const third = await world.provider().find(request.runUid, world.namespace);
    await expect(third?.exec('true')).rejects.toBeInstanceOf(SandboxLostError);
    await until('it is released', () => other.release(request.runUid, world.namespace));
  });

  it('BR-40: of machines that failed, ended and run, the one that runs is claimed; then it is deleted', async () => {
    const pool = `ends-${randomBytes(2).toString('hex')}`;
    faults.set(pool, [{ phase: 'Failed' }, { phase: 'Succeeded' }]);
    // Nobody removes what has ended here: no controller knows the pool.
    const labels = { [LABELS.pool]: pool, [LABELS.role]: 'standby' };
    const [template] = await world.machines(`${LABELS.pool}=warm`);
    for (const name of ['v1', 'v2', 'v3'])
      await world.kube.create(VIRTUAL_MACHINE_INSTANCE, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        metadata: {
          ...{ name: `${pool}-${name}`, namespace: world.namespace, labels },
          annotations: { ...template?.metadata.annotations },
        },
        spec: template?.spec ?? Object(),
      });
    const phases = async () =>
      (await world.machines(`${LABELS.pool}=${pool}`)).map((one) => one.status?.phase);
    await until(
      'all three are there',
      async () => (await phases()).toSorted().join() === 'Failed,Running,Succeeded',
    );
    const running = (await world.machines(`${LABELS.pool}=${pool}`)).find(
      (one) => one.status?.phase === 'Running',
    );
    await until('it has an address', async () => {
      const seen = await world.kube.get(VIRTUAL_MACHINE_INSTANCE, {
        ...{ namespace: world.namespace, name: running?.metadata.name ?? '' },
      });
      return seen?.status?.interfaces?.[0]?.ipAddress !== undefined;
    });
    const provider = world.provider();
    const request = world.aRequest(pool);
    const sandbox = await claimed(provider, request);
    expect(sandbox.ref.name).toBe(running?.metadata.name);
    await sandbox.start();
    const ended = sandbox.exec('sleep 60').catch((error: unknown) => error);
    await until('it runs', async () => text(await sandbox.exec('pgrep -x sleep | wc -l')).trim() === '1');
    await world.kube.delete(VIRTUAL_MACHINE_INSTANCE, { namespace: world.namespace, name: sandbox.ref.name });
    expect(await ended).toBeInstanceOf(SandboxLostError);
    expect(String(await ended)).toMatch(/does not exist any more|is being deleted/);
    faults.delete(pool);
  });

  it('makes one for the run where it is empty and says so', async () => {
    const pool = world.aPool('empty', 0);
    await world.kube.create(SANDBOX_POOLS, {
      ...pool,
      spec: { ...pool.spec, claim: { timeout: '0s', createOnEmpty: true } },
    });
    const provider = world.provider();
    const request = world.aRequest('empty');
    const sandbox = await until('it is there', async () => {
      const result = await provider.claim(request);
      return result.kind === 'Claimed' && result.sandbox;
    });
    await sandbox.start();
    expect(text(await sandbox.exec('echo made for me'))).toBe('made for me\n');
    expect(await world.machines(`${LABELS.pool}=empty`)).toHaveLength(1);
    await until('it is released', () => provider.release(request.runUid, world.namespace));
  });

  it('replaces its machines one after the other when its key or template changes', async () => {
    const before = new Set((await world.machines(`${LABELS.pool}=warm`)).map(({ metadata }) => metadata.uid));
    await world.kube.patch(
      SANDBOX_POOLS,
      { namespace: world.namespace, name: 'warm' },
      { type: 'merge', body: { spec: { virtualMachineInstance: { cpuCores: 2 } } } },
    );
    await until('all are new', async () => {
      const now = await world.machines(`${LABELS.pool}=warm,${LABELS.role}=standby`);
      return (
        now.length === 2 &&
        now.every(({ metadata, spec }) => !before.has(metadata.uid) && spec.domain.cpu?.cores === 2) &&
        (await world.status('warm'))?.conditions?.find(({ type }) => type === 'Progressing')?.reason ===
          'Complete'
      );
    });
  });

  it.each([
    ['there is no such Secret', 'KeyNotFound', undefined],
    ['it is no private key', 'KeyUnusable', 'not a key'],
  ])('says why it makes none: %s', async (_what, reason, value) => {
    const name = `bad-${reason.toLowerCase()}`;
    if (value !== undefined)
      await world.kube.create(SECRET, { ...world.aKey(name), stringData: { id: value } });
    const pool = world.aPool(name, 1);
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
      (await world.status(name))?.conditions?.some((one) => one.type === 'Ready' && one.reason === reason),
    );
  });
});

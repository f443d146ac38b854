import { setTimeout as sleep } from 'node:timers/promises';
import { keyOf, refOfKey } from '../../../src/kube/cache.ts';
import { createController, from } from '../../../src/kube/controller.ts';
import { isKubeError } from '../../../src/kube/errors.ts';
import { createInformer } from '../../../src/kube/informer.ts';
import { SECRET } from '../../../src/kube/kinds.ts';
import {
  type MachineStatus,
  VIRTUAL_MACHINE_INSTANCE,
  VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
  type VirtualMachineInstance,
  type VirtualMachineInstanceReplicaSet,
} from '../../../src/kube/kubevirt/kinds.ts';
import { KEYS_SERIAL } from '../../../src/kube/kubevirt/machine.ts';
import { hasEnded } from '../../../src/kube/kubevirt/state.ts';
import type { KubeClient } from '../../../src/kube/port.ts';
import type { Transport } from '../../../src/kube/transport.ts';
import { kubectl } from '../../crds/kubectl.ts';
import { applyKubeVirt } from './crds.ts';
import {
  type Booted,
  bootMachine,
  ensureMachinePackages,
  type Machine,
  type MachineWish,
} from './machine.ts';
import { decideReplicaSet } from './replica-set.ts';

/** What goes wrong with one machine; nothing when left out. */
export interface Faults {
  /** Stays in a phase before Running for so long. */
  readonly bootMs?: number;
  /** Ends in this phase instead of running. */
  readonly phase?: 'Failed' | 'Succeeded';
  /** Running, with an interface and an active pod, but without an address: for ever, or for so long. */
  readonly address?: 'never' | { readonly lateMs: number };
  /** Has an address and is called ready, but nothing listens: for ever, or for so long. */
  readonly sshd?: 'never' | { readonly lateMs: number };
  /** Lets nobody in. */
  readonly keys?: 'none';
}

/** A stand-in for KubeVirt in one namespace of a real API server: its controllers, and real sshds as guests. */
export interface KubeVirt {
  /** The machine behind a VirtualMachineInstance that has an address. */
  machine(name: string): Machine;
  /** It ends in its place, as an evicted one does: phase Failed, the object stays. */
  evict(name: string): Promise<void>;
  /** The first machine ends unnoticed, its object unchanged; the second's guest gets its address. */
  reuseAddress(ended: string, next: string): Promise<void>;
  close(): Promise<void>;
}

export interface KubeVirtOptions {
  readonly kube: KubeClient;
  readonly transport: Transport;
  readonly namespace: string;
  readonly faults?: (machine: VirtualMachineInstance) => Faults;
  /** What fulfils a VirtualMachineInstance; default: an sshd in namespaces of its own, which knows all faults. */
  readonly boot?: (wish: MachineWish) => Promise<Booted>;
  /** As administrator, for the kinds; default: the test's cluster. */
  readonly kubectl?: (args: readonly string[], input?: string) => Promise<string>;
}

const FINALIZER = 'foregroundDeleteVirtualMachine';
const NODE = 'node1';

export async function startKubeVirt(options: KubeVirtOptions): Promise<KubeVirt> {
  const { kube, transport, namespace, faults = () => ({}), boot: bootOne = bootMachine } = options;
  await Promise.all([applyKubeVirt(options.kubectl ?? kubectl), ensureMachinePackages()]);
  const machines = createInformer({ transport, kind: VIRTUAL_MACHINE_INSTANCE, namespace });
  const sets = createInformer({ transport, kind: VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, namespace });
  const guests = new Map<string, Booted>();
  const stopping = new AbortController();

  const instances = createController({
    name: 'virt-controller',
    sources: [from(machines)],
    concurrency: 16,
    async reconcile(key) {
      const machine = await kube.get(VIRTUAL_MACHINE_INSTANCE, refOfKey(key));
      if (machine !== undefined) await reconcileMachine(machine);
      return {};
    },
  });
  const replicaSets = createController({
    name: 'virt-controller-replicasets',
    sources: [from(sets), from(machines, () => sets.list().map(keyOf))],
    // One at a time, from the API server's own words: no expectations are needed then.
    concurrency: 1,
    async reconcile(key) {
      const set = await kube.get(VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, refOfKey(key));
      if (set !== undefined && set.metadata.deletionTimestamp === undefined) await reconcileSet(set);
      return {};
    },
  });
  machines.start();
  sets.start();
  await Promise.all([instances.start(), replicaSets.start()]);

  async function reconcileMachine(machine: VirtualMachineInstance): Promise<void> {
    const { metadata, status } = machine;
    const uid = metadata.uid ?? '';
    if (metadata.deletionTimestamp !== undefined) {
      await guests.get(uid)?.kill();
      guests.delete(uid);
      await patch(machine, { metadata: { finalizers: null } });
      return;
    }
    if (hasEnded(machine) || status?.phase === 'Running') return;
    await boot(machine, faults(machine));
  }

  /** The phases in KubeVirt's order, each a write of its own. */
  async function boot(machine: VirtualMachineInstance, fault: Faults): Promise<void> {
    const uid = machine.metadata.uid ?? '';
    if (!machine.metadata.finalizers?.includes(FINALIZER))
      await patch(machine, { metadata: { finalizers: [FINALIZER] } });
    const interfaces = [{ name: 'default' }];
    const activePods = { [`launcher-of-${uid}`]: NODE };
    await setStatus(machine, { phase: 'Scheduling', activePods, conditions: [readyIs('False')] });
    await setStatus(machine, { phase: 'Scheduled', nodeName: NODE });
    if (fault.bootMs !== undefined && !(await pause(fault.bootMs))) return;
    if (fault.phase !== undefined) {
      await setStatus(machine, { phase: fault.phase, activePods: {} });
      return;
    }
    const guest =
      guests.get(uid) ??
      (await bootOne({
        name: machine.metadata.name ?? '',
        keys: fault.keys === 'none' ? '' : await keysOf(machine),
      }));
    guests.set(uid, guest);
    void guest.ended?.then(() => tellOfTheEnd(machine));
    if (isMachine(guest)) {
      if (fault.sshd === undefined) await guest.startSshd();
      else if (fault.sshd !== 'never') void later(fault.sshd.lateMs, () => guest.startSshd());
    }
    await setStatus(machine, { phase: 'Running', interfaces });
    const giveAddress = () =>
      setStatus(machine, {
        interfaces: [{ name: 'default', ipAddress: guest.address }],
        // Without a readiness probe KubeVirt calls a machine ready that merely runs.
        conditions: [readyIs('True')],
      });
    if (fault.address === undefined) await giveAddress();
    else if (fault.address !== 'never') void later(fault.address.lateMs, giveAddress);
  }

  async function tellOfTheEnd(machine: VirtualMachineInstance): Promise<void> {
    if (stopping.signal.aborted) return;
    const status: MachineStatus = { phase: 'Failed', activePods: {}, conditions: [readyIs('False')] };
    await setStatus(machine, status).catch((error: unknown) => console.error('kubevirt:', error));
  }

  async function reconcileSet(set: VirtualMachineInstanceReplicaSet): Promise<void> {
    const { items } = await kube.list(VIRTUAL_MACHINE_INSTANCE, { namespace });
    const { adopt, release, create, remove, status } = decideReplicaSet(set, items);
    for (const machine of adopt) await patchGuarded(machine, [ownerOf(set)]);
    for (const machine of release) await patchGuarded(machine, null);
    for (const machine of remove) await kube.delete(VIRTUAL_MACHINE_INSTANCE, refOf(machine));
    const { metadata, spec } = set.spec.template;
    for (let count = 0; count < create; count++) {
      await kube.create(VIRTUAL_MACHINE_INSTANCE, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        metadata: {
          ...metadata,
          generateName: `${set.metadata.name}`,
          namespace,
          ownerReferences: [ownerOf(set)],
        },
        spec,
      });
    }
    const selector = Object.entries(set.spec.selector.matchLabels ?? {})
      .map(([name, value]) => `${name}=${value}`)
      .join(',');
    const told = { ...status, labelSelector: selector };
    const { status: before } = set;
    if (before?.replicas === told.replicas && before.readyReplicas === told.readyReplicas) return;
    await kube.patch(
      VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
      refOf(set),
      { type: 'merge', body: { status: told } },
      { subresource: 'status' },
    );
  }

  /** The files of the disk with the serial that the image's service looks for, as it copies them at boot. */
  async function keysOf({ spec }: VirtualMachineInstance): Promise<string> {
    const disk = spec.domain.devices.disks.find(({ serial }) => serial === KEYS_SERIAL);
    const volume = spec.volumes.find(({ name }) => name === disk?.name);
    if (volume?.secret === undefined) return '';
    // The launcher pod hangs until its volumes can be mounted.
    for (;;) {
      const secret = await kube.get(SECRET, { namespace, name: volume.secret.secretName });
      const files = Object.values(secret?.data ?? {});
      if (secret !== undefined) return files.map((file) => Buffer.from(file, 'base64').toString()).join('\n');
      if (!(await pause(100))) throw new Error('the stand-in is closed');
    }
  }

  async function patchGuarded(
    { metadata }: VirtualMachineInstance,
    ownerReferences: readonly object[] | null,
  ): Promise<void> {
    const { uid, resourceVersion } = metadata;
    const body = { metadata: { uid, resourceVersion, ownerReferences } };
    await unlessGone(kube.patch(VIRTUAL_MACHINE_INSTANCE, refOf({ metadata }), { type: 'merge', body }));
  }

  async function patch(machine: VirtualMachineInstance, body: object): Promise<void> {
    await unlessGone(kube.patch(VIRTUAL_MACHINE_INSTANCE, refOf(machine), { type: 'merge', body }));
  }

  async function setStatus(machine: VirtualMachineInstance, status: MachineStatus): Promise<void> {
    const body = { metadata: { uid: machine.metadata.uid }, status };
    const change = { type: 'merge', body } as const;
    await unlessGone(kube.patch(VIRTUAL_MACHINE_INSTANCE, refOf(machine), change, { subresource: 'status' }));
  }

  async function later(ms: number, action: () => Promise<unknown>): Promise<void> {
    if (await pause(ms)) await action().catch(() => undefined);
  }

  /** False when the stand-in is closed meanwhile. */
  async function pause(ms: number): Promise<boolean> {
    await sleep(ms, undefined, { signal: stopping.signal }).catch(() => undefined);
    return !stopping.signal.aborted;
  }

  function known(name: string): VirtualMachineInstance {
    const machine = machines.get(`${namespace}/${name}`);
    if (machine === undefined) throw new Error(`no VirtualMachineInstance ${name}`);
    return machine;
  }

  function machineOf(name: string): Machine {
    const guest = guests.get(known(name).metadata.uid ?? '');
    if (guest === undefined || !isMachine(guest))
      throw new Error(`VirtualMachineInstance ${name} has no guest that can be told to fail`);
    return guest;
  }

  return {
    machine: machineOf,
    async evict(name) {
      const machine = known(name);
      await machineOf(name).kill();
      const conditions = [readyIs('False')];
      await setStatus(machine, { phase: 'Failed', reason: 'Evicted', activePods: {}, conditions });
    },
    async reuseAddress(ended, next) {
      const { address } = machineOf(ended);
      const machine = known(next);
      await machineOf(ended).kill();
      await machineOf(next).kill();
      const guest = await bootMachine({ name: next, keys: await keysOf(machine), address });
      await guest.startSshd();
      guests.set(machine.metadata.uid ?? '', guest);
      await setStatus(machine, { interfaces: [{ name: 'default', ipAddress: address }] });
    },
    async close() {
      stopping.abort();
      await Promise.all([replicaSets.stop(), instances.stop()]);
      await Promise.all([machines.stop(), sets.stop()]);
      await Promise.all([...guests.values()].map((guest) => guest.kill()));
      // Nobody would remove the finalizer any more, and the namespace could not go.
      const { items } = await kube.list(VIRTUAL_MACHINE_INSTANCE, { namespace });
      for (const machine of items) {
        await patch(machine, { metadata: { finalizers: null } });
        await kube.delete(VIRTUAL_MACHINE_INSTANCE, refOf(machine));
      }
    },
  };
}

function ownerOf({ apiVersion, kind, metadata }: VirtualMachineInstanceReplicaSet) {
  const { name = '', uid = '' } = metadata;
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}

const isMachine = (guest: Booted): guest is Machine => 'startSshd' in guest;

const readyIs = (status: 'True' | 'False') => ({ type: 'Ready', status }) as const;

const refOf = ({ metadata }: { readonly metadata: VirtualMachineInstance['metadata'] }) => ({
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
});

/** What a test deletes meanwhile, or changes, is looked at again by itself. */
async function unlessGone(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!isKubeError(error, 'NotFound', 'Conflict')) throw error;
  }
}

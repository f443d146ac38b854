import { randomUUID } from 'node:crypto';
import { LABELS } from '../../crds/meta.ts';
import type { SandboxPool } from '../../crds/sandbox-pool.ts';
import { systemClock } from '../../kube/clock.ts';
import { VIRTUAL_MACHINE_INSTANCE, type VirtualMachineInstance } from '../../kube/kubevirt/kinds.ts';
import { isMachineUsable, machineProblem } from '../../kube/kubevirt/state.ts';
import type { Logger } from '../../kube/log.ts';
import type { Sandbox, SandboxProvider } from '../port.ts';
import { type ConnectionOptions, MachineConnection } from '../vm/connection.ts';
import { isProcessAlive, removeLeftovers } from '../vm/folder.ts';
import { machineSandbox } from '../vm/machine.ts';
import type { Claimable } from './claimable.ts';
import { claimablePool, type OpenRequest, type PoolTerms } from './pool.ts';
import { loginOf } from './vmi-login.ts';

export const MACHINES: Claimable<VirtualMachineInstance> = {
  kind: VIRTUAL_MACHINE_INSTANCE,
  backend: 'VirtualMachineInstance',
  isUsable: isMachineUsable,
  problem: machineProblem,
};

export interface MachinePoolOptions extends PoolTerms, Pick<ConnectionOptions, 'tempDir' | 'env'> {
  readonly logger: Logger;
  /** Machines of a namespace as a cache last saw them; undefined while there is none. */
  readonly cached?: (namespace: string) => readonly VirtualMachineInstance[] | undefined;
  /** A machine of the pool, without name and owner, for `claim.createOnEmpty`. Left out: runs wait. */
  readonly machineOf?: (pool: SandboxPool) => VirtualMachineInstance | undefined;
  /** Text of the private key; left out: from the Secret that the machine names. */
  readonly privateKey?: () => Promise<string>;
  /** Told of every private key that was read, so that no log repeats it. */
  readonly onSecret?: (value: string) => void;
}

export interface MachinePool extends SandboxProvider {
  /** A machine of a pool that nobody need have claimed; it is not deleted, and shares the machine's connection. */
  open(machine: VirtualMachineInstance): Sandbox;
  /** Ends the connections to machines that are none of these, by their uids: they exist no more. */
  forget(present: ReadonlySet<string>): Promise<void>;
  /** Ends every connection. */
  close(): Promise<void>;
}

/** Sandboxes from the warm machines of a SandboxPool. Whoever opens a machine in this process shares one connection. */
export function machinePool(options: MachinePoolOptions): MachinePool {
  const { kube, logger, cached, machineOf, clock = systemClock, ...terms } = options;
  const connections = new Map<string, OpenMachine>();
  void removeLeftovers(options.tempDir, {
    pid: process.pid,
    startedAt: new Date(Date.now() - 1000 * process.uptime()),
    isAlive: isProcessAlive,
  });

  function connectionTo(machine: VirtualMachineInstance): MachineConnection {
    const { namespace = '', name = '', uid = '' } = machine.metadata;
    const known = connections.get(uid);
    if (known !== undefined) {
      // Its labels may have changed: it was probed before it was claimed.
      known.machine = machine;
      return known.connection;
    }
    const connection = new MachineConnection({
      ...{ kube, namespace, name, uid, clock, newId: randomUUID },
      ...{ tempDir: options.tempDir, env: options.env },
      login: () => loginOf(options, machine),
    });
    connections.set(uid, { machine, connection });
    return connection;
  }

  async function hangUp(gone: (machine: VirtualMachineInstance) => boolean): Promise<void> {
    for (const [uid, { machine, connection }] of [...connections]) {
      if (!gone(machine)) continue;
      connections.delete(uid);
      await connection.close();
    }
  }

  function opened(machine: VirtualMachineInstance, ends: Ends): Sandbox {
    const { namespace = '', name = '', uid } = machine.metadata;
    const leave = () => hangUp(({ metadata }) => metadata.uid === uid);
    return machineSandbox({
      ...{ connection: connectionTo(machine), clock, logger },
      ref: { kind: 'VirtualMachineInstancePool', name, namespace },
      async deleteMachine() {
        await leave();
        await ends.remove();
      },
      async lingerMachine(sessionId) {
        await leave();
        await ends.linger(sessionId);
      },
    });
  }

  const pool = claimablePool({
    ...{ ...terms, kube, clock, what: MACHINES },
    open: (request) => opened(request.object, request),
    ...(cached === undefined ? {} : { cached }),
    ...(machineOf === undefined ? {} : { template: machineOf }),
  });
  const ofRun =
    (runUid: string) =>
    ({ metadata }: VirtualMachineInstance) =>
      metadata.labels?.[LABELS.run] === runUid;

  return {
    ...pool,
    async linger(request) {
      await hangUp(ofRun(request.runUid));
      const result = await pool.linger(request);
      if (result.kind === 'Lingers') await hangUp(({ metadata }) => metadata.name === result.ref.name);
      return result;
    },
    async release(runUid, namespace) {
      await hangUp(ofRun(runUid));
      return pool.release(runUid, namespace);
    },
    open: (machine) => opened(machine, NOT_OURS),
    forget: (present) => hangUp(({ metadata }) => !present.has(metadata.uid ?? '')),
    async close() {
      await hangUp(() => true);
    },
  };
}

interface OpenMachine {
  /** As last opened. */
  machine: VirtualMachineInstance;
  readonly connection: MachineConnection;
}

type Ends = Pick<OpenRequest<VirtualMachineInstance>, 'remove' | 'linger'>;

/** Who only looks into a machine leaves it where it is. */
const NOT_OURS: Ends = { remove: async () => undefined, linger: async () => undefined };

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ManualClock } from '../../kube/clock.ts';
import type { MachineStatus, VirtualMachineInstance } from '../../kube/kubevirt/kinds.ts';
import { machineSpec } from '../../kube/kubevirt/machine.ts';
import type { KubeClient } from '../../kube/port.ts';
import { SandboxLostError, SandboxUnavailableError } from '../port.ts';
import { MachineCommands } from './commands.ts';
import { MachineConnection } from './connection.ts';
import { startMachine } from './start.ts';

const tempDir = mkdtempSync(join(tmpdir(), 'vm-start-'));
afterAll(() => rmSync(tempDir, { recursive: true }));

const READY = { type: 'Ready', status: 'True' } as const;
const WITHOUT_ADDRESS: MachineStatus = {
  phase: 'Running',
  interfaces: [{ name: 'default' }],
  activePods: { launcher: 'node1' },
  conditions: [READY],
};

function aMachine(status: MachineStatus, uid = 'uid-1'): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'v', namespace: 'sandboxes', uid },
    spec: machineSpec({ containerDisk: 'image', cpuCores: 1, memory: '1Gi' }, 'keys'),
    status,
  };
}

/** Starts against an object that changes with the time; there is no ssh to be called: a call would be seen. */
function starting(object: (seconds: number) => VirtualMachineInstance | undefined) {
  const clock = new ManualClock();
  let reads = 0;
  const kube = {
    get: async () => {
      reads++;
      return object(clock.monotonicMs() / 1000);
    },
    patch: () => Promise.reject(new Error('not expected')),
  } as unknown as Pick<KubeClient, 'get' | 'patch'>; // one kind is all that is asked for
  const connection = new MachineConnection({
    ...{ kube, namespace: 'sandboxes', name: 'v', uid: 'uid-1', clock, newId: () => crypto.randomUUID() },
    ...{ tempDir, env: { PATH: '/nonexistent' } },
    login: async () => ({ user: 'sandbox', privateKey: 'key' }),
  });
  const commands = new MachineCommands({ connection, clock, newId: () => crypto.randomUUID() });
  const options = { clock, machineTimeoutMs: 300_000, sshTimeoutMs: 120_000 };
  const started = startMachine(connection, commands, options).then(
    () => undefined,
    (error: unknown) => error,
  );
  return { clock, started, connection, reads: () => reads };
}

describe('the start of a machine', () => {
  it('BR-41: gives up after 300 s without an address, with the reason, and has called nobody', async () => {
    const { clock, started, reads } = starting(() => aMachine(WITHOUT_ADDRESS));
    await clock.advance(299_000);
    expect(clock.pending).toBe(1);
    await clock.advance(2_000);
    const error = await started;
    expect(error).toBeInstanceOf(SandboxUnavailableError);
    expect(String(error)).toContain('no address after 300 s: it runs and has no address');
    expect(reads()).toBeGreaterThan(100);
    expect(readdirSync(tempDir)).toEqual([]);
  });

  it('BR-41: calls ssh once the address is there, and not before', async () => {
    const { clock, started, connection } = starting((seconds) =>
      aMachine(
        seconds < 3 ? WITHOUT_ADDRESS : { ...WITHOUT_ADDRESS, interfaces: [{ ipAddress: '10.0.0.7' }] },
      ),
    );
    await clock.advance(2_500);
    expect(clock.pending).toBe(1);
    await clock.advance(1_000);
    const error = await started;
    expect(error).toBeInstanceOf(SandboxUnavailableError);
    expect(String(error)).toContain('ssh cannot be started');
    await connection.close();
    expect(readdirSync(tempDir)).toEqual([]);
  });

  it('says what the machine waits for', async () => {
    const condition = {
      type: 'PodScheduled',
      status: 'False' as const,
      reason: 'Unschedulable',
      message: 'no KVM on any node',
    };
    const { clock, started } = starting(() => aMachine({ phase: 'Scheduling', conditions: [condition] }));
    await clock.advance(301_000);
    expect(String(await started)).toContain('Unschedulable: no KVM on any node');
  });

  it('waits a minute for an image that cannot be pulled, not five', async () => {
    const condition = {
      type: 'Synchronized',
      status: 'False' as const,
      reason: 'ErrImagePull',
      message: 'no such image',
    };
    const { clock, started } = starting(() => aMachine({ phase: 'Scheduling', conditions: [condition] }));
    await clock.advance(62_000);
    expect(String(await started)).toContain('ErrImagePull: no such image');
  });

  it.each<[string, VirtualMachineInstance | undefined, string]>([
    ['is not there', undefined, 'does not exist any more'],
    ['is another one', aMachine(WITHOUT_ADDRESS, 'uid-2'), 'another machine has taken its name'],
    ['has failed', aMachine({ phase: 'Failed', reason: 'Evicted' }), 'Failed, Evicted'],
    ['has ended', aMachine({ phase: 'Succeeded' }), 'Succeeded'],
  ])('ends at once when it %s', async (_name, object, why) => {
    const error = await starting(() => object).started;
    expect(error).toBeInstanceOf(SandboxLostError);
    expect(String(error)).toContain(why);
  });
});

import { describe, expect, it } from 'vitest';
import type { MachineStatus, VirtualMachineInstance } from './kinds.ts';
import { machineSpec } from './machine.ts';
import { addressOf, isMachineUsable, machineProblem } from './state.ts';

const READY = { type: 'Ready', status: 'True' } as const;
const RUNNING: MachineStatus = {
  phase: 'Running',
  interfaces: [{ name: 'default', ipAddress: '10.0.0.7' }],
  conditions: [READY],
};

function aMachine(
  status: MachineStatus | undefined,
  metadata: VirtualMachineInstance['metadata'] = {},
): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'v', ...metadata },
    spec: machineSpec({ containerDisk: 'image', cpuCores: 1, memory: '1Gi' }, 'keys'),
    ...(status === undefined ? {} : { status }),
  };
}

describe('a machine', () => {
  it('can be used when it runs, is ready and has an address', () => {
    expect(isMachineUsable(aMachine(RUNNING))).toBe(true);
  });

  it.each<[string, MachineStatus | undefined]>([
    ['nobody has looked at it', undefined],
    ['it is scheduled', { ...RUNNING, phase: 'Scheduled' }],
    ['BR-40: it has failed', { ...RUNNING, phase: 'Failed' }],
    ['BR-40: it has ended', { ...RUNNING, phase: 'Succeeded' }],
    ['it is not ready', { ...RUNNING, conditions: [{ type: 'Ready', status: 'False' }] }],
    ['nothing is said of its readiness', { ...RUNNING, conditions: [] }],
    ['it is to leave its node', { ...RUNNING, evacuationNodeName: 'node1' }],
    ['BR-41: it has no interface', { phase: 'Running', conditions: [READY], activePods: { u: 'node1' } }],
    ['BR-41: its interface has no address', { ...RUNNING, interfaces: [{ name: 'default' }] }],
    ['BR-41: its address is empty', { ...RUNNING, interfaces: [{ name: 'default', ipAddress: ' ' }] }],
  ])('cannot be used while %s', (_name, status) => {
    expect(isMachineUsable(aMachine(status))).toBe(false);
  });

  it('cannot be used while it is being deleted', () => {
    expect(isMachineUsable(aMachine(RUNNING, { deletionTimestamp: '2026-01-01T00:00:00Z' }))).toBe(false);
  });

  it('has the first address that is one', () => {
    expect(
      addressOf(
        aMachine({ interfaces: [{ name: 'a' }, { name: 'b', ipAddress: '' }, { ipAddress: '10.0.0.9' }] }),
      ),
    ).toBe('10.0.0.9');
    expect(addressOf(aMachine(undefined))).toBeUndefined();
  });
});

describe('what keeps a machine from starting', () => {
  it.each<[string, MachineStatus | undefined, object | undefined]>([
    ['nothing while it starts', { phase: 'Scheduling' }, undefined],
    ['nothing before anybody has looked', undefined, undefined],
    [
      'its image',
      {
        phase: 'Scheduling',
        conditions: [
          { type: 'Synchronized', status: 'False', reason: 'ImagePullBackOff', message: 'no image' },
        ],
      },
      { reason: 'ImagePullBackOff', message: 'no image', kind: 'Pull' },
    ],
    [
      'a quota',
      {
        phase: 'Pending',
        conditions: [{ type: 'Synchronized', status: 'False', reason: 'FailedCreate', message: 'quota' }],
      },
      { reason: 'FailedCreate', message: 'quota', kind: 'Other' },
    ],
    [
      'no node',
      {
        phase: 'Scheduling',
        conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'no KVM' }],
      },
      { reason: 'Unschedulable', message: 'no KVM', kind: 'Other' },
    ],
    [
      'its end',
      { phase: 'Failed', reason: 'NodeUnresponsive' },
      { reason: 'NodeUnresponsive', kind: 'Other' },
    ],
  ])('%s', (_name, status, expected) => {
    const problem = machineProblem(aMachine(status));
    if (expected === undefined) expect(problem).toBeUndefined();
    else expect(problem).toMatchObject(expected);
  });
});

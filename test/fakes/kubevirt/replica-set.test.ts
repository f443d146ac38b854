import { describe, expect, it } from 'vitest';
import type { ObjectMeta } from '../../../src/crds/meta.ts';
import type { MachineStatus, VirtualMachineInstance } from '../../../src/kube/kubevirt/kinds.ts';
import { machineSpec } from '../../../src/kube/kubevirt/machine.ts';
import { decideReplicaSet } from './replica-set.ts';

const spec = machineSpec({ containerDisk: 'image', cpuCores: 1, memory: '1Gi' }, 'keys');
const set = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstanceReplicaSet',
  metadata: { name: 'warm', uid: 'set' },
  spec: { replicas: 2, selector: { matchLabels: { role: 'standby' } }, template: { spec } },
};
const owner = {
  apiVersion: set.apiVersion,
  kind: set.kind,
  name: 'warm',
  uid: 'set',
  controller: true,
} as const;

function aMachine(
  name: string,
  metadata: ObjectMeta = {},
  status: MachineStatus = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
): VirtualMachineInstance {
  const labels = { role: 'standby' };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name, uid: name, labels, ownerReferences: [owner], ...metadata },
    spec,
    status,
  };
}

describe('the replica set of the stand-in', () => {
  it('is at rest with as many as it wants', () => {
    expect(decideReplicaSet(set, [aMachine('a'), aMachine('b')])).toMatchObject({
      adopt: [],
      release: [],
      create: 0,
      remove: [],
      status: { replicas: 2, readyReplicas: 2 },
    });
  });
  it('replaces one that left its selector with its owner, and leaves it alone', () => {
    const claimed = aMachine('a', { labels: { role: 'active' }, ownerReferences: [] });
    expect(decideReplicaSet(set, [claimed, aMachine('b')])).toMatchObject({
      adopt: [],
      release: [],
      create: 1,
    });
  });
  it('lets go of one that left its selector and still names it', () => {
    const labelled = aMachine('a', { labels: { role: 'active' } });
    expect(decideReplicaSet(set, [labelled, aMachine('b')])).toMatchObject({
      release: [labelled],
      create: 1,
    });
  });
  it('takes one that matches and has no owner', () => {
    const orphan = aMachine('a', { ownerReferences: [] });
    expect(decideReplicaSet(set, [orphan, aMachine('b'), aMachine('c')])).toMatchObject({
      adopt: [orphan],
      create: 0,
      remove: [expect.anything()],
    });
  });
  it('BR-40: does not count, nor remove, what is in a final phase', () => {
    const ended = [aMachine('a', {}, { phase: 'Failed' }), aMachine('b', {}, { phase: 'Succeeded' })];
    expect(decideReplicaSet(set, ended)).toMatchObject({ create: 2, remove: [], status: { replicas: 0 } });
  });
  it('does not count what is being deleted', () => {
    const going = aMachine('a', { deletionTimestamp: '2026-01-01T00:00:00Z' });
    expect(decideReplicaSet(set, [going, aMachine('b')])).toMatchObject({ create: 1 });
  });
  it('removes what is not ready first', () => {
    const starting = aMachine('c', {}, { phase: 'Scheduling' });
    expect(decideReplicaSet(set, [aMachine('a'), aMachine('b'), starting]).remove).toEqual([starting]);
  });
});

import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { standbyLabels } from '../../../crds/labels.ts';
import { ANNOTATIONS, LABELS, type ObjectMeta } from '../../../crds/meta.ts';
import type { SandboxPool } from '../../../crds/sandbox-pool.ts';
import type { MachineStatus, VirtualMachineInstance } from '../../../kube/kubevirt/kinds.ts';
import { sshKeyPair } from '../../../kube/kubevirt/ssh-key.ts';
import { decideMachines } from './decide.ts';
import { keysFor, machinePolicyFor, machineSetFor } from './manifests.ts';
import type { MachinesObserved } from './observe.ts';

const now = new Date('2026-01-01T00:10:00Z');
const operator = { namespace: 'agents', labels: { app: 'operator' } };
const { publicKey } = sshKeyPair(generateKeyPairSync('ed25519').privateKey, 1);
const settings = {
  containerDisk: 'image:1',
  cpuCores: 2,
  memory: '4Gi',
  ssh: { user: 'sandbox', privateKeySecretRef: { name: 'vm-key', key: 'id' } },
};
const pool: SandboxPool = {
  apiVersion: 'hummingbird.dev/v1alpha1',
  kind: 'SandboxPool',
  metadata: { name: 'warm', namespace: 'sandboxes', uid: 'pool', generation: 1 },
  spec: {
    replicas: 2,
    backend: 'VirtualMachineInstance',
    virtualMachineInstance: settings,
    claim: { timeout: '0s', createOnEmpty: false },
    maxActive: '30m',
    linger: { duration: '5m', max: 1 },
    egressProbe: { enabled: false, period: '30s', targets: [] },
  },
};
const machineSet = machineSetFor(pool, settings, { publicKey, replicas: 2 });
const template = machineSet.spec.template.metadata?.annotations ?? {};

function aMachine(
  name: string,
  metadata: ObjectMeta = {},
  status: MachineStatus = {
    phase: 'Running',
    interfaces: [{ name: 'default', ipAddress: '10.0.0.7' }],
    conditions: [{ type: 'Ready', status: 'True' }],
  },
): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name, uid: name, labels: standbyLabels('warm'), annotations: template, ...metadata },
    spec: machineSet.spec.template.spec,
    status,
  };
}

const claimed = { [LABELS.pool]: 'warm', [LABELS.role]: 'active', [LABELS.run]: 'run' };

function observed(
  machines: readonly VirtualMachineInstance[],
  rest: Partial<MachinesObserved> = {},
): MachinesObserved {
  return {
    ...{ pool, settings, operator, publicKey, egress: undefined },
    kubevirt: { machineSet, machines },
    networkPolicy: machinePolicyFor(pool, operator),
    keys: keysFor(pool, publicKey),
    ...rest,
  };
}

const actionsOf = (...args: Parameters<typeof observed>) =>
  decideMachines(observed(...args), now).actions.map((action) =>
    action.kind === 'DeleteMachine' ? `${action.why} ${action.machine.metadata.name}` : action.kind,
  );
const ready = (...args: Parameters<typeof observed>) =>
  decideMachines(observed(...args), now).status.conditions?.find(({ type }) => type === 'Ready');

describe('a pool of machines', () => {
  it('at rest needs nothing, and is looked at again', () => {
    const decision = decideMachines(observed([aMachine('a'), aMachine('b')]), now);
    expect(decision.actions).toEqual([]);
    expect(decision.requeueAfterMs).toBe(2_000);
    expect(decision.status).toMatchObject({ replicas: 2, ready: 2, claimed: 0, lingering: 0 });
    expect(
      decision.status.conditions?.map(({ type, status, reason }) => `${type} ${status} ${reason}`),
    ).toEqual([
      'Ready True SandboxesReady',
      'Progressing False Complete',
      'EgressBlocked Unknown ProbeDisabled',
    ]);
  });

  it('shuts the network and lays the key out before the first machine', () => {
    const missing = { networkPolicy: undefined, keys: undefined };
    expect(actionsOf([], { ...missing, kubevirt: { machineSet: undefined, machines: [] } })).toEqual([
      'ApplyNetworkPolicy',
      'ApplyKeys',
      'ApplyMachineSet',
    ]);
  });

  it('lets nobody speak SSH but the operator', () => {
    expect(machinePolicyFor(pool, operator).spec).toMatchObject({
      podSelector: { matchLabels: { [LABELS.pool]: 'warm' } },
      policyTypes: ['Egress', 'Ingress'],
      egress: [],
      ingress: [
        {
          from: [
            {
              namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'agents' } },
              podSelector: { matchLabels: { app: 'operator' } },
            },
          ],
          ports: [{ protocol: 'TCP', port: 22 }],
        },
      ],
    });
  });

  it('BR-40: counts what has ended as nothing, and removes it', () => {
    const machines = [
      aMachine('v1', {}, { phase: 'Failed', reason: 'Evicted' }),
      aMachine('v2', {}, { phase: 'Succeeded' }),
      aMachine('v3'),
    ];
    expect(decideMachines(observed(machines), now).status).toMatchObject({ replicas: 1, ready: 1 });
    expect(actionsOf(machines).filter((action) => action.startsWith('Broken'))).toEqual([
      'Broken v1',
      'Broken v2',
    ]);
  });

  it('leaves claimed machines to their runs, ended or of an older template', () => {
    const old = { annotations: { ...template, [ANNOTATIONS.template]: 'old' } };
    const machines = [
      aMachine('a'),
      aMachine('b'),
      aMachine('c', { labels: claimed, ...old }),
      aMachine('d', { labels: claimed }, { phase: 'Failed' }),
    ];
    expect(actionsOf(machines)).toEqual([]);
    expect(decideMachines(observed(machines), now).status).toMatchObject({ ready: 2, claimed: 1 });
  });

  describe('whose template has changed', () => {
    const old = { annotations: { ...template, [ANNOTATIONS.template]: 'old' } };
    const starting: MachineStatus = { phase: 'Scheduling' };
    it.each<[string, readonly VirtualMachineInstance[], readonly string[]]>([
      ['replaces one at a time', [aMachine('a', old), aMachine('b', old)], ['Outdated a']],
      ['waits for the one that comes in its place', [aMachine('a', old), aMachine('c', {}, starting)], []],
      [
        'waits for the one that goes',
        [aMachine('a', old), aMachine('b', { ...old, deletionTimestamp: '2026-01-01T00:00:00Z' })],
        [],
      ],
      ['goes on afterwards', [aMachine('a', old), aMachine('c')], ['Outdated a']],
      [
        'does not wait for those that nobody could claim',
        [aMachine('a', old, starting), aMachine('b', old, starting), aMachine('c', {}, starting)],
        ['Outdated a', 'Outdated b'],
      ],
    ])('%s', (_name, machines, actions) => {
      expect(actionsOf(machines)).toEqual(actions);
    });

    it('or whose key has changed', () => {
      const other = machineSetFor(pool, settings, {
        publicKey: sshKeyPair(generateKeyPairSync('ed25519').privateKey, 1).publicKey,
        replicas: 2,
      });
      expect(other.spec.template.metadata?.annotations?.[ANNOTATIONS.template]).not.toBe(
        template[ANNOTATIONS.template],
      );
    });

    it('says so', () => {
      const decision = decideMachines(observed([aMachine('a', old), aMachine('b', old)]), now);
      expect(decision.status.conditions?.[1]).toMatchObject({ type: 'Progressing', reason: 'RollingOut' });
    });
  });

  it('keeps as many for replies as it may', () => {
    const lingering = (name: string, minute: number) =>
      aMachine(name, {
        labels: { [LABELS.pool]: 'warm', [LABELS.role]: 'active' },
        annotations: {
          ...template,
          [ANNOTATIONS.sessionId]: `agents/${name}`,
          [ANNOTATIONS.reapBy]: `2026-01-01T00:${minute}:00Z`,
        },
      });
    expect(actionsOf([aMachine('a'), aMachine('b'), lingering('x', 14), lingering('y', 12)])).toEqual([
      'Evicted y',
    ]);
  });

  it.each<[string, Partial<MachinesObserved>, object]>([
    ['KubeVirt is not there', { kubevirt: undefined }, { reason: 'KubeVirtMissing' }],
    [
      'the private key is not there',
      { publicKey: { reason: 'KeyNotFound', message: 'no key' } },
      { reason: 'KeyNotFound', message: expect.stringContaining('no key') },
    ],
    [
      'somebody else has the name',
      { keys: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'warm-ssh-pubkeys' } } },
      { reason: 'NameTaken', message: expect.stringContaining('Secret warm-ssh-pubkeys') },
    ],
  ])('does nothing while %s, and says so', (_name, rest, expected) => {
    expect(ready([], rest)).toMatchObject({ status: 'False', ...expected });
    expect(actionsOf([], rest)).toEqual([]);
  });

  it('that is being deleted is left to the garbage collector', () => {
    const going = { ...pool, metadata: { ...pool.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    expect(decideMachines(observed([aMachine('a')], { pool: going }), now).actions).toEqual([]);
  });
});

import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../kube/clock.ts';
import { KubeError } from '../../kube/errors.ts';
import type { ClaimResult, Sandbox, SandboxProvider, SandboxRequest } from '../port.ts';
import { poolsByBackend } from './by-backend.ts';

const request: SandboxRequest = {
  runUid: 'u',
  runName: 'run',
  runNamespace: 'agents',
  workflow: 'w',
  pool: { namespace: 'sandboxes', name: 'warm' },
  epoch: 1,
  labels: {},
  reapBy: new Date(0),
};
const lingering = { runUid: 'u', runNamespace: 'agents', sessionId: 's', namespace: 'sandboxes' };

/** A provider that writes down what it is asked, and owns a sandbox or none. */
function aProvider(name: string, calls: string[], owns: boolean, failure?: Error): SandboxProvider {
  const asked = async <T>(what: string, answer: T): Promise<T> => {
    calls.push(`${name} ${what}`);
    if (failure !== undefined) throw failure;
    return answer;
  };
  const sandbox = { ref: { kind: 'PodPool', name } } as unknown as Sandbox; // only its name is looked at
  const waiting: ClaimResult = { kind: 'Waiting', message: name };
  return {
    claim: () => asked('claim', waiting),
    find: () => asked('find', owns ? sandbox : undefined),
    linger: () => asked('linger', { kind: 'NotKept', message: name } as const),
    release: () => asked('release', !owns),
  };
}

function world(options: {
  readonly backend?: 'Pod' | 'VirtualMachineInstance';
  readonly pod?: boolean;
  readonly machine?: boolean;
  readonly failure?: Error;
}) {
  const calls: string[] = [];
  const clock = new ManualClock();
  const provider = poolsByBackend({
    pods: aProvider('pods', calls, options.pod ?? false),
    machines: aProvider('machines', calls, options.machine ?? false, options.failure),
    backendOf: async () => options.backend,
    clock,
  });
  return { provider, calls, clock };
}

const notServed = (reason: 'NotFound' | 'Forbidden' | 'Unreachable') =>
  new KubeError({ reason, message: 'no', where: 'LIST virtualmachineinstances' });

describe('a claim', () => {
  it.each([
    ['Pod', 'pods'],
    ['VirtualMachineInstance', 'machines'],
    [undefined, 'pods'],
  ] as const)('of a pool with backend %s goes to the %s', async (backend, to) => {
    const { provider, calls } = world(backend === undefined ? {} : { backend });
    expect(await provider.claim(request)).toMatchObject({ message: to });
    expect(calls).toEqual([`${to} claim`]);
  });
});

describe('what is asked for a run afterwards', () => {
  it('is found among machines too', async () => {
    expect((await world({ machine: true }).provider.find('u', 'n'))?.ref.name).toBe('machines');
    expect((await world({ pod: true }).provider.find('u', 'n'))?.ref.name).toBe('pods');
    expect(await world({}).provider.find('u', 'n')).toBeUndefined();
  });

  it('lingers where it is', async () => {
    expect(await world({ machine: true }).provider.linger(lingering)).toMatchObject({ message: 'machines' });
    expect(await world({ pod: true }).provider.linger(lingering)).toMatchObject({ message: 'pods' });
  });

  it.each([
    [{}, true],
    [{ machine: true }, false],
    [{ pod: true }, false],
  ])('is released among both: %j', async (options, none) => {
    const { provider, calls } = world(options);
    expect(await provider.release('u', 'n')).toBe(none);
    expect(calls.toSorted()).toEqual(['machines release', 'pods release']);
  });
});

describe('a cluster without KubeVirt', () => {
  it.each(['NotFound', 'Forbidden'] as const)(
    '(%s) has no machines, and is asked once a minute',
    async (reason) => {
      const { provider, calls, clock } = world({ failure: notServed(reason) });
      const machineCalls = () => calls.filter((call) => call.startsWith('machines')).length;
      expect(await provider.release('u', 'n')).toBe(true);
      expect(await provider.find('u', 'n')).toBeUndefined();
      expect(machineCalls()).toBe(1);
      await clock.advance(61_000);
      await provider.find('u', 'n');
      expect(machineCalls()).toBe(2);
    },
  );

  it('is not the same as an API server that does not answer', async () => {
    const { provider } = world({ failure: notServed('Unreachable') });
    await expect(provider.release('u', 'n')).rejects.toThrow('no');
  });
});

import { lingers } from '../../src/crds/lingering.ts';
import { VIRTUAL_MACHINE_INSTANCE } from '../../src/kube/kubevirt/kinds.ts';
import type { Sandbox } from '../../src/sandbox/port.ts';
import { machinePoolWorld } from '../builders/machine-pools.ts';
import { until } from '../builders/pool.ts';
import { sandboxConformance } from './conformance.ts';

sandboxConformance('vmpool', async () => {
  const world = await machinePoolWorld();
  await world.filled('conformance', 2);
  const provider = world.provider();
  const machineOf = ({ ref }: Sandbox) =>
    world.kube.get(VIRTUAL_MACHINE_INSTANCE, { namespace: world.namespace, name: ref.name });
  return {
    make: () => {
      const request = world.aRequest('conformance', { sessionId: 'session-1' });
      return until('a free machine', async () => {
        const result = await provider.claim(request);
        return result.kind === 'Claimed' && result.sandbox;
      });
    },
    lose: async ({ ref }) => {
      await world.kube.delete(VIRTUAL_MACHINE_INSTANCE, { namespace: world.namespace, name: ref.name });
    },
    exists: async (sandbox) => (await machineOf(sandbox)) !== undefined,
    lingers: async (sandbox) => {
      const machine = await machineOf(sandbox);
      return machine !== undefined && lingers(machine);
    },
    dispose: () => world.close(),
  };
});

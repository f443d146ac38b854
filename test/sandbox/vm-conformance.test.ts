import { VIRTUAL_MACHINE_INSTANCE } from '../../src/kube/kubevirt/kinds.ts';
import type { Sandbox } from '../../src/sandbox/port.ts';
import { type MachineWorld, machineWorld } from '../builders/machines.ts';
import { sandboxConformance } from './conformance.ts';

sandboxConformance('vm', async () => {
  const world: MachineWorld = await machineWorld();
  const refOf = ({ ref }: Sandbox) => ({ namespace: world.namespaces.sandboxes, name: ref.name });
  return {
    make: () => world.own(),
    async lose(sandbox) {
      await world.kube.delete(VIRTUAL_MACHINE_INSTANCE, refOf(sandbox));
    },
    exists: async (sandbox) => (await world.kube.get(VIRTUAL_MACHINE_INSTANCE, refOf(sandbox))) !== undefined,
    dispose: () => world.close(),
  };
});

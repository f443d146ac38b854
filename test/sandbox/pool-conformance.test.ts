import { randomUUID } from 'node:crypto';
import { lingers } from '../../src/crds/lingering.ts';
import { execConnection } from '../../src/kube/exec-connection.ts';
import { POD } from '../../src/kube/kinds.ts';
import { silentLogger } from '../../src/kube/log.ts';
import { podOpener } from '../../src/sandbox/pool/open-pod.ts';
import { podPool } from '../../src/sandbox/pool/pool.ts';
import type { Sandbox } from '../../src/sandbox/port.ts';
import { poolWorld, until } from '../builders/pool.ts';
import { sandboxConformance } from './conformance.ts';

sandboxConformance('pool', async () => {
  const world = await poolWorld();
  const namespace = world.namespaces.sandboxes;
  await world.filledPool('conformance', 2);
  const connection = execConnection(world.connection);
  const provider = podPool({
    kube: world.kube,
    cachedPods: () => world.pods.list(),
    openPod: podOpener({ connection, client: world.kube, logger: silentLogger }),
  });
  const podOf = ({ ref }: Sandbox) => world.kube.get(POD, { namespace, name: ref.name });
  return {
    make: async () => {
      const runUid = randomUUID();
      const request = {
        ...{ runUid, runName: `run-${runUid}`, runNamespace: world.namespaces.agents, workflow: 'analyze' },
        ...{ sessionId: 'session-1', pool: { namespace, name: 'conformance' }, epoch: 1, labels: {} },
        reapBy: new Date(Date.now() + 1_800_000),
      };
      return until('a free pod', async () => {
        const result = await provider.claim(request);
        return result.kind === 'Claimed' && result.sandbox;
      });
    },
    lose: async ({ ref }) => {
      await world.kube.delete(POD, { namespace, name: ref.name });
    },
    exists: async (sandbox) => (await podOf(sandbox)) !== undefined,
    lingers: async (sandbox) => {
      const pod = await podOf(sandbox);
      return pod !== undefined && lingers(pod);
    },
    dispose: () => world.close(),
  };
});

import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedCluster } from '../cluster/shared.ts';
import { type FaultProxy, startFaultProxy } from '../faults/proxy.ts';
import { aWorld, type World } from './world.ts';

/** Longer than a Lease lives without a renewal: the replica has to let go, and to come back by itself. */
const AWAY_MS = 15_000;

describe('an operator whose API server is away', () => {
  let world: World;
  let proxy: FaultProxy;
  const gate = Promise.withResolvers<void>();

  beforeAll(async () => {
    const cluster = await sharedCluster();
    proxy = await startFaultProxy({
      target: cluster.server,
      targetCa: Buffer.from(cluster.caData, 'base64'),
    });
    world = await aWorld(cluster, {
      scripts: {
        'test-script': async ({ messages }) => {
          if (!messages.some(({ role }) => role === 'tool'))
            return { toolCalls: [{ name: 'sandbox_exec', args: { command: 'echo done' } }] };
          await gate.promise;
          return { text: 'The cache is not emptied.' };
        },
      },
      workflowSpec: { limits: { timeout: '5m' } },
      operator: async ({ store, namespaces }) => {
        const kubeconfigPath = join('folder' in store ? store.folder : '', 'through-proxy.kubeconfig');
        proxy.writeKubeconfig(
          kubeconfigPath,
          await cluster.serviceAccountToken(namespaces.agents, 'hummingbird-operator'),
        );
        return { kubeconfigPath };
      },
    });
    await world.operator.waitReady();
  });
  afterAll(async () => {
    gate.resolve();
    await world?.close();
    await proxy?.close();
  });

  it('lets go of its runs, comes back in the same process and finishes them with one note', async () => {
    await world.startRun('outage');
    await world.waitRun('outage', 'a tool call', ({ status }) => (status?.toolCalls ?? 0) >= 1);
    proxy.refuse(true);
    proxy.dropAll();
    await new Promise((resolve) => setTimeout(resolve, AWAY_MS));
    proxy.refuse(false);
    gate.resolve();
    const run = await world.waitEnd('outage');
    expect(run.status).toMatchObject({ phase: 'Succeeded', holder: { epoch: 2 } });
    expect(world.operator.running).toBe(true);
    expect(world.notes()).toEqual([expect.stringContaining('The cache is not emptied.')]);
    expect(await world.podsOf(run)).toEqual([]);
    await world.operator.waitReady();
  });
});

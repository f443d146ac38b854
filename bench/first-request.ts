import type { Cluster } from '../hack/cluster/cluster.ts';
import { run } from '../hack/operator/objects.ts';
import { AGENT_RUNS, type AgentRun } from '../src/crds/agent-run.ts';
import { createClient } from '../src/kube/client.ts';
import { connect } from '../src/kube/config.ts';
import { createTransport } from '../src/kube/transport.ts';
import { aWorld, PROJECT } from '../test/operator/world.ts';
import { percentile, type Rows, rounded } from './row.ts';

const RUNS = 50;

/**
 * From the moment before an AgentRun is created until its first request reaches the model's endpoint, with a
 * warm pod free: finalizer, hold, admission, placeholder note, claim and start of the loop lie between.
 */
export async function firstRequestBench(cluster: Cluster): Promise<Rows> {
  const arrivals: number[] = [];
  const world = await aWorld(cluster, {
    replicas: 3,
    scripts: {
      'bench-script': () => {
        arrivals.push(performance.now());
        return { text: 'Nothing to see.' };
      },
    },
  });
  const transport = createTransport(connect({ kind: 'Files', paths: [cluster.kubeconfigPath] }));
  const kube = createClient(transport);
  const samples: number[] = [];
  try {
    await world.operator.waitReady();
    for (let count = 0; count < RUNS; count += 1) {
      await poolReady(world.kubectl, world.namespaces.sandboxes);
      const name = `bench-${count}`;
      const object = run(world.namespaces, { name, project: PROJECT, iid: world.mergeRequest.iid });
      arrivals.length = 0;
      const before = performance.now();
      // What `run` makes is an AgentRun without what the API server fills in.
      await kube.create(AGENT_RUNS, object as AgentRun);
      await world.waitEnd(name);
      samples.push((arrivals[0] ?? Number.NaN) - before);
    }
  } finally {
    await transport.close();
    await world.close();
  }
  const row = { better: 'lower', unit: 'ms', runs: RUNS } as const;
  return {
    'firstRequest.p50ms': { ...row, value: rounded(percentile(samples, 0.5)), goal: 250 },
    'firstRequest.p95ms': { ...row, value: rounded(percentile(samples, 0.95)), goal: 250 },
  };
}

/** A pod that is still being made would be measured as a wait for the pool, which is another figure. */
async function poolReady(
  kubectl: (args: readonly string[]) => Promise<string>,
  namespace: string,
): Promise<void> {
  const args = ['get', 'sandboxpool', 'analysis', '-n', namespace, '-o', 'jsonpath={.status.ready}'];
  while (Number(await kubectl(args)) < 3) await new Promise((resolve) => setTimeout(resolve, 100));
}

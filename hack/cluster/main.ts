import { parseArgs } from 'node:util';
import { attachCluster, listClusters, removeCluster, startCluster } from './cluster.ts';
import { clusterDir } from './paths.ts';

const usage = `usage: node hack/cluster/main.ts up|down|status [--name NAME] [--no-firewall]
  up      start a one-node cluster (root on Linux; the first time it builds Kubernetes, some 6 minutes)
  down    end it and remove what it left
  status  list clusters`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  allowNegative: true,
  options: { name: { type: 'string', default: 'dev' }, firewall: { type: 'boolean', default: true } },
});

try {
  await command(positionals[0]);
} catch (error) {
  console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
  if (error instanceof Error && error.cause instanceof Error)
    console.error(`because: ${error.cause.message}`);
  process.exitCode = 1;
}

async function command(word: string | undefined): Promise<void> {
  const { name, firewall } = values;
  if (word === 'up') {
    const running = listClusters().find((each) => each.name === name && each.running);
    if (running) {
      console.error(`cluster "${name}" is running already; use it with:`);
      console.log(`export KUBECONFIG=${(await attachCluster(running.stateDir)).kubeconfigPath}`);
      return;
    }
    const startedAt = performance.now();
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => {
        console.error(
          `interrupted; "node hack/cluster/main.ts down --name ${name}" removes what was started`,
        );
        process.exit(130);
      });
    }
    const cluster = await startCluster({ name, firewall, log: (line) => console.error(line) });
    console.error(
      `cluster "${name}" is ready after ${((performance.now() - startedAt) / 1000).toFixed(1)} s; use it with:`,
    );
    console.log(`export KUBECONFIG=${cluster.kubeconfigPath}`);
  } else if (word === 'down') {
    await removeCluster(clusterDir(name));
    console.error(`cluster "${name}" is gone`);
  } else if (word === 'status') {
    for (const { name: each, stateDir, running } of listClusters()) {
      console.log(`${each}\t${running ? 'running' : 'stopped'}\t${stateDir}`);
    }
  } else {
    console.error(usage);
    process.exitCode = 2;
  }
}

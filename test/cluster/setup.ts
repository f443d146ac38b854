import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { TestProject } from 'vitest/node';

/** What every test of the project `cluster` is given, through `inject('cluster')`; see shared.ts for the methods. */
export interface ProvidedCluster {
  readonly name: string;
  readonly stateDir: string;
  readonly kubeconfigPath: string;
  readonly server: string;
  /** Base64 of the CA's PEM. */
  readonly caData: string;
  readonly adminToken: string;
  readonly kubectlPath: string;
  readonly nodeName: string;
}

declare module 'vitest' {
  export interface ProvidedContext {
    cluster: ProvidedCluster;
  }
}

/**
 * One cluster for the whole run, removed at its end. With HUMMINGBIRD_TEST_KUBECONFIG naming the kubeconfig of a
 * cluster that `hack/cluster/main.ts up` started, that one is used and left running.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { attachCluster, listClusters, removeCluster, startCluster } = await import(
    '../../hack/cluster/cluster.ts'
  );
  const log = (line: string) => console.error(`cluster: ${line}`);
  const existing = process.env['HUMMINGBIRD_TEST_KUBECONFIG'];
  if (!existing) {
    for (const { name, stateDir } of listClusters())
      if (isAbandoned(name)) await removeCluster(stateDir, log);
  }
  const cluster = existing
    ? await attachCluster(dirname(existing), log)
    : await startCluster({ name: `test-${process.pid}`, log });
  const { name, stateDir, kubeconfigPath, server, caData, adminToken, kubectlPath, nodeName } = cluster;
  project.provide('cluster', {
    ...{ name, stateDir, kubeconfigPath, server, caData, adminToken, kubectlPath, nodeName },
  });
  return async () => {
    if (!existing) await cluster.stop();
  };
}

/** A cluster of a test run, or of one of its files, whose process is gone. */
function isAbandoned(name: string): boolean {
  const pid = /^test-(\d+)(?:-[a-z]+)?$/.exec(name)?.[1];
  return pid !== undefined && !existsSync(`/proc/${pid}`);
}

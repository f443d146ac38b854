import { inject } from 'vitest';
import { attachCluster, type Cluster } from '../../hack/cluster/cluster.ts';
import { createClient } from '../../src/kube/client.ts';
import { type Connection, connect } from '../../src/kube/config.ts';
import { type ExecConnection, execConnection } from '../../src/kube/exec-connection.ts';
import { POD } from '../../src/kube/kinds.ts';
import type { KubeClient } from '../../src/kube/port.ts';
import { createTransport } from '../../src/kube/transport.ts';
import { createNamespace, deleteNamespace, sandboxPod } from '../cluster/shared.ts';

/** Sandbox pods in a namespace of their own, on the run's real cluster. */
export interface Pods {
  readonly cluster: Cluster;
  readonly connection: ExecConnection;
  readonly client: KubeClient;
  readonly namespace: string;
  /** Creates a pod without waiting for it. */
  create(name: string, image?: string): Promise<{ readonly uid: string }>;
  /** Creates a pod and waits until it is ready. */
  ready(name: string): Promise<{ readonly uid: string }>;
  delete(name: string): Promise<void>;
  dispose(): Promise<void>;
}

export async function openPods(): Promise<Pods> {
  const cluster = await attachCluster(inject('cluster').stateDir);
  const connection: Connection = connect({ kind: 'Files', paths: [cluster.kubeconfigPath] });
  const transport = createTransport(connection);
  const client = createClient(transport);
  const namespace = await createNamespace(cluster);
  const create = async (name: string, image?: string) => {
    const text = JSON.stringify(sandboxPod(name));
    const manifest = image === undefined ? text : text.replace('hummingbird.test/sandbox:1', image);
    await cluster.kubectl(['create', '-n', namespace, '-f', '-'], manifest);
    const pod = await client.get(POD, { namespace, name });
    return { uid: pod?.metadata.uid ?? '' };
  };
  return {
    cluster,
    connection: execConnection(connection),
    client,
    namespace,
    create,
    ready: async (name) => {
      const made = await create(name);
      await cluster.kubectl([
        'wait',
        '-n',
        namespace,
        `pod/${name}`,
        '--for=condition=Ready',
        '--timeout=60s',
      ]);
      return made;
    },
    delete: async (name) => {
      await client.delete(POD, { namespace, name });
    },
    dispose: async () => {
      await deleteNamespace(cluster, namespace);
      await transport.close();
    },
  };
}

import { inject, onTestFinished } from 'vitest';
import { waitUntil } from '../../hack/cluster/api.ts';
import { attachCluster, type Cluster } from '../../hack/cluster/cluster.ts';
import './setup.ts';

/** The run's cluster with all its methods. */
export function sharedCluster(): Promise<Cluster> {
  return attachCluster(inject('cluster').stateDir);
}

let count = 0;

/**
 * A namespace of the test's own under the Pod Security level, ready for pods (its ServiceAccount exists), deleted in
 * the background when the test ends. Call it inside a test.
 */
export async function aNamespace(
  cluster: Cluster,
  level: 'restricted' | 'baseline' | 'privileged' = 'restricted',
): Promise<string> {
  const name = await createNamespace(cluster, level);
  onTestFinished(() => deleteNamespace(cluster, name));
  return name;
}

/** The same for `beforeAll`; the caller deletes it. */
export async function createNamespace(
  cluster: Cluster,
  level: 'restricted' | 'baseline' | 'privileged' = 'restricted',
): Promise<string> {
  count += 1;
  const name = `t-${process.pid}-${count}-${Date.now().toString(36)}`;
  const labels = { 'pod-security.kubernetes.io/enforce': level };
  await cluster.kubectl(
    ['create', '-f', '-'],
    JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }),
  );
  await waitUntil(
    () =>
      cluster.kubectl(['get', 'serviceaccount', 'default', '-n', name]).then(
        () => true,
        () => false,
      ),
    120_000,
    () => `namespace ${name} has no ServiceAccount after 120 s`,
  );
  return name;
}

export async function deleteNamespace(cluster: Cluster, name: string): Promise<void> {
  await cluster.kubectl(['delete', 'namespace', name, '--wait=false', '--ignore-not-found']);
}

/** A pod of the sandbox image that the level `restricted` admits: non-root, read-only root, an emptyDir at /tmp. */
export function sandboxPod(
  name: string,
  options: { labels?: Record<string, string>; command?: readonly string[] } = {},
): unknown {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: options.labels ?? {} },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      dnsPolicy: 'Default',
      terminationGracePeriodSeconds: 1,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'sandbox',
          image: 'hummingbird.test/sandbox:1',
          ...(options.command === undefined ? {} : { command: options.command }),
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
        },
      ],
      volumes: [{ name: 'tmp', emptyDir: {} }],
    },
  };
}

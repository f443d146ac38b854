import { execFile } from 'node:child_process';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startCluster } from '../cluster/cluster.ts';
import { DEFAULT_NAMESPACES, type Kubectl } from '../operator/install.ts';

/** What the demo needs of a cluster, its own or the user's. */
export interface DemoCluster extends Kubectl {
  /** Known to enforce NetworkPolicy: sandboxes are proven isolated before they are handed out. */
  readonly isolates: boolean;
  /** Sandbox image that the cluster has. */
  readonly image: string;
  /** `export KUBECONFIG=…` or the context, for people who go on by hand. */
  readonly howToUse: string;
  /** The command line of kubectl, to watch with. */
  readonly kubectlCommand: readonly string[];
  /** A kubeconfig with the ServiceAccount's own token, so that its RBAC is what counts. */
  kubeconfigFor(namespace: string, serviceAccount: string): Promise<string>;
  stop(): Promise<void>;
}

/** A cluster of this machine, made for the demo and removed with it. */
export async function ownCluster(log: (line: string) => void): Promise<DemoCluster> {
  const cluster = await startCluster({ name: 'demo', log });
  return {
    isolates: true,
    image: 'hummingbird.test/sandbox:1',
    howToUse: `export KUBECONFIG=${cluster.kubeconfigPath}\nexport PATH=$PATH:${join(cluster.kubectlPath, '..')}`,
    kubectlCommand: [cluster.kubectlPath, '--kubeconfig', cluster.kubeconfigPath],
    kubectl: (args, stdin) => cluster.kubectl(args, stdin),
    kubeconfigFor: (namespace, serviceAccount) => cluster.kubeconfigFor(namespace, serviceAccount),
    stop: () => cluster.stop(),
  };
}

/** A cluster that is there already (kind, OpenShift, any other), by its context. */
export async function existingCluster(context: string, image: string): Promise<DemoCluster> {
  const command = ['kubectl', '--context', context];
  const kubectl = (args: readonly string[], stdin?: string) => run([...command, ...args], stdin);
  await kubectl(['version', '--request-timeout=10s']).catch((error: unknown) => {
    throw new Error(`context ${context} does not answer: ${error instanceof Error ? error.message : error}`);
  });
  const names = Object.values(DEFAULT_NAMESPACES);
  const taken = (await kubectl(['get', 'namespaces', ...names, '--ignore-not-found', '-o', 'name'])).trim();
  if (taken !== '')
    throw new Error(
      `context ${context} has ${taken.replaceAll('\n', ' and ')} already. The demo makes and, at its end, deletes the namespaces ${names.join(' and ')}: remove them when nobody needs them, or choose another cluster`,
    );
  return {
    // Many a local cluster does not, and the demo is about something else.
    isolates: false,
    image,
    howToUse: `kubectl config use-context ${context}`,
    kubectlCommand: command,
    kubectl,
    async kubeconfigFor(namespace, serviceAccount) {
      const view: { clusters: unknown[] } = JSON.parse(
        await kubectl(['config', 'view', '--minify', '--flatten', '-o', 'json']),
      );
      const [cluster] = view.clusters;
      const token = (
        await kubectl(['create', 'token', serviceAccount, '-n', namespace, '--duration=2h'])
      ).trim();
      const name =
        typeof cluster === 'object' && cluster !== null && 'name' in cluster ? String(cluster.name) : '';
      const file = join(await mkdtemp(join(tmpdir(), 'hummingbird-demo-')), 'operator.kubeconfig');
      const config = {
        apiVersion: 'v1',
        kind: 'Config',
        clusters: view.clusters,
        users: [{ name: serviceAccount, user: { token } }],
        contexts: [{ name: 'demo', context: { cluster: name, user: serviceAccount, namespace } }],
        'current-context': 'demo',
      };
      await writeFile(file, JSON.stringify(config), { mode: 0o600 });
      return file;
    },
    stop: async () => undefined,
  };
}

function run(command: readonly string[], stdin?: string): Promise<string> {
  const [program = '', ...args] = command;
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, { maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      const missing = 'code' in error && error.code === 'ENOENT';
      reject(
        new Error(
          missing
            ? 'kubectl is missing: install it from your distribution or from kubernetes.io/docs/tasks/tools'
            : stderr.trim() || error.message,
        ),
      );
    });
    child.stdin?.end(stdin ?? '');
  });
}

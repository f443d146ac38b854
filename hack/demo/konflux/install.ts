import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { z } from 'zod';
import { LABELS } from '../../../src/crds/meta.ts';
import { applyTekton } from '../../../test/fakes/tekton/crds.ts';
import { apply, type Kubectl, type Namespaces } from '../../operator/install.ts';
import { POD, READER, type RunObject, TESTS, testPod, tests } from './objects.ts';
import type { KonfluxScene } from './scene.ts';

/**
 * The live half: the failed tests as Tekton's objects and a real pod, whose log says which request was made, and a
 * reader of them. KubeArchive has the PipelineRun too: it is listed once all the same. Returns the workflow's data
 * sources; the Secret that they name is among the namespace's.
 */
export async function installKonflux(
  cluster: Kubectl & { kubeconfigFor(namespace: string, serviceAccount: string): Promise<string> },
  {
    namespaces,
    konflux,
    sha,
    image,
  }: {
    readonly namespaces: Namespaces;
    readonly konflux: KonfluxScene;
    readonly sha: string;
    readonly image: string;
  },
): Promise<object> {
  const { namespace, archive, farm } = konflux;
  await applyTekton((args, input) => cluster.kubectl(args, input));
  await apply(cluster, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  await apply(cluster, ...reader(namespace));
  for (const object of tests(namespace, sha)) await applyWithStatus(cluster, object);
  await apply(cluster, testPod(namespace, sha, image, `${farm.artifactsUrl}/${konflux.requestId}/`));
  await cluster.kubectl([
    ...['wait', `pod/${POD}`, '-n', namespace, '--for=jsonpath={.status.phase}=Failed', '--timeout=120s'],
  ]);
  const live = await cluster.kubectl(['get', 'pipelinerun', TESTS, '-n', namespace, '-o', 'json']);
  archive.state.keep(JSON.parse(live));

  const kubeconfig = await readFile(await cluster.kubeconfigFor(namespace, READER), 'utf8');
  const { server, token } = accessOf(kubeconfig);
  archive.state.grant(token, namespace);
  await apply(cluster, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'konflux', namespace: namespaces.agents, labels: { [LABELS.tokenTier]: 'tool' } },
    stringData: { kubeconfig },
  });
  return {
    gitlab: { tokenSecretRef: { name: 'gitlab-read', key: 'token' } },
    konflux: {
      clusterURL: `${server}/ns/${namespace}`,
      kubeconfigSecretRef: { name: 'konflux', key: 'kubeconfig' },
      kubearchiveURL: archive.url,
    },
    testingFarm: { artifactsURL: farm.artifactsUrl, apiURL: farm.apiUrl },
  };
}

const Kubeconfig = z.object({
  clusters: z.tuple([z.object({ cluster: z.object({ server: z.string() }) })]),
  users: z.tuple([z.object({ user: z.object({ token: z.string() }) })]),
});

function accessOf(kubeconfig: string): { readonly server: string; readonly token: string } {
  const { clusters, users } = Kubeconfig.parse(parse(kubeconfig));
  return { server: clusters[0].cluster.server, token: users[0].user.token };
}

/** Reads what the tools read, in this namespace, and nothing else. */
function reader(namespace: string): readonly object[] {
  const metadata = { name: READER, namespace };
  const read = (apiGroup: string, ...resources: readonly string[]) => ({
    ...{ apiGroups: [apiGroup], resources, verbs: ['get', 'list'] },
  });
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    {
      ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata },
      rules: [read('tekton.dev', 'pipelineruns', 'taskruns'), read('', 'pods', 'pods/log')],
    },
    {
      ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding', metadata },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: READER },
      subjects: [{ kind: 'ServiceAccount', name: READER, namespace }],
    },
  ];
}

/** The status is a resource of its own, and the uid is the cluster's to give. */
async function applyWithStatus(
  cluster: Kubectl,
  { apiVersion, kind, metadata, status }: RunObject,
): Promise<void> {
  const { name, namespace, labels } = metadata;
  await apply(cluster, { apiVersion, kind, metadata: { name, namespace, labels }, spec: {} });
  await cluster.kubectl([
    ...['patch', kind.toLowerCase(), name, '-n', namespace, '--subresource=status', '--type=merge'],
    ...['-p', JSON.stringify({ status })],
  ]);
}

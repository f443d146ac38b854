import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Cluster } from '../../hack/cluster/cluster.ts';
import { createHttpClient, type HttpClient } from '../../src/http/client.ts';
import { createClient } from '../../src/kube/client.ts';
import { connect } from '../../src/kube/config.ts';
import type { KubeClient } from '../../src/kube/port.ts';
import { createTransport, type Transport } from '../../src/kube/transport.ts';
import { toolToken } from '../../src/settings/tokens.ts';
import { type KonfluxAccess, konfluxTools, openKonflux } from '../../src/sources/konflux/tools.ts';
import {
  aRunObject,
  BUILD_LABEL,
  callTool,
  readStream,
  SHA,
  scope,
  TEST_LABEL,
} from '../builders/konflux.ts';
import { installTekton } from '../builders/tekton.ts';
import { createNamespace, deleteNamespace, sandboxPod, sharedCluster } from '../cluster/shared.ts';
import { type FakeKubeArchive, startKubeArchive } from '../fakes/kubearchive/server.ts';

/** The cluster is real: its API server lists and pages, its kubelet has the logs. KubeArchive is the stand-in. */
let cluster: Cluster;
let transport: Transport;
let kube: KubeClient;
let http: HttpClient;
let archive: FakeKubeArchive;
let namespace: string;
let access: KonfluxAccess;
let kubeconfig: string;

const RULES = [
  { apiGroups: ['tekton.dev'], resources: ['pipelineruns', 'taskruns'], verbs: ['get', 'list'] },
  { apiGroups: [''], resources: ['pods', 'pods/log'], verbs: ['get'] },
];

beforeAll(async () => {
  cluster = await sharedCluster();
  transport = createTransport(connect({ kind: 'Files', paths: [cluster.kubeconfigPath] }));
  kube = createClient(transport);
  http = createHttpClient({ limits: { retry: { attempts: 2, baseMs: 10 } } });
  [archive, namespace] = await Promise.all([
    startKubeArchive(),
    createNamespace(cluster),
    installTekton(cluster),
  ]);
  await apply(
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'reader' } },
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'reader' }, rules: RULES },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'reader' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
      subjects: [{ kind: 'ServiceAccount', name: 'reader', namespace }],
    },
  );
  kubeconfig = await readFile(await cluster.kubeconfigFor(namespace, 'reader'), 'utf8');
  const secrets: string[] = [];
  access = opened(kubeconfig, (secret) => secrets.push(secret));
  archive.state.grant(secrets[0] ?? '', namespace);
});
afterAll(async () => {
  await Promise.all([archive?.stop(), http?.close(), transport?.close()]);
  await deleteNamespace(cluster, namespace);
});

function opened(text: string, onSecret?: (secret: string) => void): KonfluxAccess {
  const found = openKonflux({
    http,
    clusterUrl: `${cluster.server}/ns/${namespace}`,
    kubearchiveUrl: archive.url,
    kubeconfig: toolToken(text),
    ...(onSecret ? { onSecret } : {}),
  });
  if (found.kind === 'Invalid') throw new Error(found.message);
  return found.access;
}

async function apply(...items: readonly object[]): Promise<void> {
  const list = { apiVersion: 'v1', kind: 'List', items };
  await cluster.kubectl(['create', '-n', namespace, '-f', '-'], JSON.stringify(list));
}

const call = (name: string, args: Readonly<Record<string, unknown>>, by = access) =>
  callTool(konfluxTools(by, scope), name, args);

const Item = z.object({ metadata: z.object({ uid: z.string(), name: z.string() }) });
async function listed(name: string, by = access) {
  const { text, incomplete } = await readStream(await call(name, { sha: SHA }, by));
  const items = text.split('\n').slice(0, -1);
  return { items: items.map((line) => Item.parse(JSON.parse(line)).metadata), incomplete };
}

/** An object for the API server, which gives uids of its own. */
function own(name: string, options: Parameters<typeof aRunObject>[1] = {}) {
  const { metadata, ...rest } = aRunObject(name, options);
  return { ...rest, metadata: { name, namespace, labels: metadata.labels ?? {} } };
}
/** The same in the archive. */
function kept(name: string, uid: string, options: Parameters<typeof aRunObject>[1] = {}) {
  const { metadata, ...rest } = aRunObject(name, { ...options, uid });
  return { ...rest, metadata: { ...metadata, namespace } };
}

const PIPELINE_RUN = {
  apiVersion: 'tekton.dev/v1',
  kind: 'PipelineRun',
  plural: 'pipelineruns',
  namespaced: true,
};

describe('lists of a real API server and KubeArchive', () => {
  it('have each object once, over several pages of both label selectors, and none of another commit', async () => {
    const names = Array.from({ length: 505 }, (_, index) => `build-${index}`);
    // Eight at a time: one after the other would take three times as long.
    const left = [...names];
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let name = left.pop(); name !== undefined; name = left.pop())
          await kube.create(PIPELINE_RUN, own(name));
      }),
    );
    await apply(
      own('test-1', { labels: { [TEST_LABEL]: SHA } }),
      own('foreign', { labels: { [BUILD_LABEL]: 'f'.repeat(40) } }),
      own('task-1', { kind: 'TaskRun' }),
    );
    const first = await kube.get(PIPELINE_RUN, { namespace, name: 'build-0' });
    archive.state.keep(
      kept('build-0', first?.metadata.uid ?? ''),
      kept('deleted-1', 'uid-1'),
      kept('deleted-2', 'uid-2', { labels: { [TEST_LABEL]: SHA } }),
    );

    const { items, incomplete } = await listed('konflux_list_pipelineruns');
    expect(incomplete).toBeUndefined();
    expect(items.map(({ name }) => name).toSorted()).toEqual(
      [...names, 'test-1', 'deleted-1', 'deleted-2'].toSorted(),
    );
    expect((await listed('konflux_list_taskruns')).items.map(({ name }) => name)).toEqual(['task-1']);
    expect(archive.violations).toEqual([]);
  });

  it('name the cluster as the gap when it refuses the token, and have what KubeArchive has', async () => {
    archive.state.keep(kept('deleted-3', 'uid-3', { kind: 'TaskRun' }));
    const wrong = kubeconfig.replace(/token: .*/, 'token: wrong-token-of-nobody');
    archive.state.grant('wrong-token-of-nobody', namespace);
    const { items, incomplete } = await listed('konflux_list_taskruns', opened(wrong));
    expect(items.map(({ name }) => name)).toEqual(['deleted-3']);
    expect(incomplete).toMatch(/^The cluster gave nothing \(.* answered 401: .*Unauthorized/);
    expect(incomplete).not.toContain('wrong-token-of-nobody');
  });
});

/** A pod whose steps are shell commands. */
function stepsPod(
  name: string,
  steps: Readonly<Record<string, string>>,
  labels = { [BUILD_LABEL]: SHA },
): object {
  const pod = sandboxPod(name, { labels }) as { spec: { containers: object[] } };
  const [first] = pod.spec.containers;
  const containers = Object.entries(steps).map(([step, command]) => ({
    ...first,
    name: step,
    command: ['sh', '-c', command],
  }));
  return { ...pod, spec: { ...pod.spec, restartPolicy: 'Never', containers } };
}
const finished = (name: string) =>
  cluster.kubectl([
    ...['wait', '-n', namespace, `pod/${name}`, '--timeout=90s'],
    '--for=jsonpath={.status.phase}=Succeeded',
  ]);

describe('logs of a real kubelet', () => {
  it('are those of all containers, or of one, and empty is said (BR-59)', async () => {
    await apply(stepsPod('done-pod', { 'step-a': 'seq 3', 'step-b': 'true', 'step-c': 'printf end' }));
    await finished('done-pod');
    const { text, incomplete } = await readStream(await call('konflux_get_pod_log', { pod: 'done-pod' }));
    expect(text).toBe(
      '=== step-a ===\n1\n2\n3\n=== step-b ===\n[empty: step-b has written nothing (0 bytes).]\n=== step-c ===\nend\n',
    );
    expect(incomplete).toBeUndefined();
    const one = await call('konflux_get_pod_log', { pod: 'done-pod', container: 'step-a' });
    expect((await readStream(one)).text).toBe('1\n2\n3\n');
    expect(await call('konflux_get_pod_log', { pod: 'done-pod', container: 'step-b' })).toMatchObject({
      kind: 'Json',
      value: { log: 'empty' },
    });
  });

  it('are lost when the pod is gone, and KubeArchive knows it and has none (BR-59)', async () => {
    const pod = stepsPod('gone-pod', { 'step-a': 'true' }) as { metadata: object };
    const metadata = {
      ...pod.metadata,
      namespace,
      uid: 'uid-gone',
      name: 'gone-pod',
      labels: { [BUILD_LABEL]: SHA },
    };
    archive.state.keep({ ...pod, apiVersion: 'v1', kind: 'Pod', metadata });
    expect(await call('konflux_get_pod_log', { pod: 'gone-pod', container: 'step-a' })).toMatchObject({
      kind: 'Json',
      value: { log: 'lost' },
    });
    archive.state.keepLog(namespace, 'gone-pod', 'step-a', 'kept\n');
    const again = await call('konflux_get_pod_log', { pod: 'gone-pod', container: 'step-a' });
    expect((await readStream(again)).text).toBe('kept\n');
  });

  it('have not started while the pod waits, for a node or for its image (BR-59)', async () => {
    const waiting = stepsPod('waiting-pod', { 'step-a': 'true' }) as { spec: object };
    const image = JSON.stringify(stepsPod('imageless-pod', { 'step-a': 'true' })).replaceAll(
      'hummingbird.test/sandbox:1',
      'hummingbird.test/nowhere:1',
    );
    await apply(
      { ...waiting, spec: { ...waiting.spec, nodeSelector: { nowhere: 'true' } } },
      JSON.parse(image),
    );
    await cluster.kubectl([
      ...['wait', '-n', namespace, 'pod/imageless-pod', '--timeout=90s'],
      '--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}',
    ]);
    for (const pod of ['waiting-pod', 'imageless-pod'])
      expect(await call('konflux_get_pod_log', { pod, container: 'step-a' })).toMatchObject({
        kind: 'Json',
        value: { pod, log: 'not started' },
      });
  });

  it('are not read of a pod that belongs to another commit, or to none', async () => {
    await apply(stepsPod('foreign-pod', { 'step-a': 'echo secret' }, { [BUILD_LABEL]: 'f'.repeat(40) }));
    for (const [pod, message] of [
      ['foreign-pod', /^Not allowed: pod foreign-pod/],
      ['no-such-pod', /^No pod no-such-pod/],
    ] as const)
      expect(await call('konflux_get_pod_log', { pod })).toMatchObject({
        kind: 'Error',
        message: expect.stringMatching(message),
      });
  });
});

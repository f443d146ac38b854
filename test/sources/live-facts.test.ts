import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Cluster } from '../../hack/cluster/cluster.ts';
import { createHttpClient, type HttpClient } from '../../src/http/client.ts';
import { toolToken } from '../../src/settings/tokens.ts';
import { type DroppedApi, openLiveFacts } from '../../src/sources/live/facts.ts';
import { createNamespace, deleteNamespace, sharedCluster } from '../cluster/shared.ts';

/** A CRD of this test's own, served in two versions; objects in two namespaces. */
let cluster: Cluster;
let http: HttpClient;
let here: string;
let there: string;
let group: string;
const methods = new Set<string>();
const kubeconfigs = new Map<string, string>();
const warnings: string[] = [];

beforeAll(async () => {
  cluster = await sharedCluster();
  const client = createHttpClient({ limits: { retry: { attempts: 2, baseMs: 10 } } });
  http = {
    ...client,
    request(request) {
      methods.add(request.method ?? 'GET');
      return client.request(request);
    },
  };
  [here, there] = await Promise.all([createNamespace(cluster), createNamespace(cluster)]);
  group = `${here}.example.org`;
  await create(
    definition('widgets', 'Widget', ['v1', 'v1alpha1']),
    definition('gadgets', 'Gadget', ['v1']),
    ...['everywhere', 'here', 'nowhere'].map((name) => ({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name, namespace: here },
    })),
    role('ClusterRole', here),
    binding('ClusterRole', here, 'everywhere'),
    role('Role', 'here'),
    binding('Role', 'here', 'here'),
  );
  const names = ['widgets', 'gadgets'].map((plural) => `crd/${plural}.${group}`);
  await cluster.kubectl(['wait', ...names, '--for=condition=Established', '--timeout=60s']);
  await create(widget('a', here), widget('b', here), widget('c', here), widget('d', there));
  for (const name of ['everywhere', 'here', 'nowhere'])
    kubeconfigs.set(name, await readFile(await cluster.kubeconfigFor(here, name), 'utf8'));
}, 300_000);
afterAll(async () => {
  const names = ['widgets', 'gadgets'].map((plural) => `crd/${plural}.${group}`);
  await cluster.kubectl(['delete', ...names, '--wait=false', '--ignore-not-found']);
  for (const kind of ['clusterrole', 'clusterrolebinding'])
    await cluster.kubectl(['delete', kind, here, '--ignore-not-found']);
  await Promise.all([http?.close(), deleteNamespace(cluster, here), deleteNamespace(cluster, there)]);
});

const create = (...items: readonly object[]): Promise<unknown> =>
  cluster.kubectl(['create', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));

const definition = (plural: string, kind: string, versions: readonly string[]) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural, singular: kind.toLowerCase(), kind },
    versions: versions.map((name, index) => ({
      name,
      served: true,
      storage: index === 0,
      schema: { openAPIV3Schema: { type: 'object' } },
    })),
  },
});
const widget = (name: string, namespace: string) => ({
  apiVersion: `${group}/v1`,
  kind: 'Widget',
  metadata: { name, namespace },
});
const role = (kind: string, name: string) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind,
  metadata: { name, ...(kind === 'Role' && { namespace: here }) },
  rules: [{ apiGroups: [group], resources: ['*'], verbs: ['list'] }],
});
const binding = (kind: string, name: string, account: string) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: `${kind}Binding`,
  metadata: { name, ...(kind === 'Role' && { namespace: here }) },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name },
  subjects: [{ kind: 'ServiceAccount', name: account, namespace: here }],
});

const widgets = (change: Partial<DroppedApi> = {}): DroppedApi => ({
  crd: `widgets.${group}`,
  group,
  versions: ['v1alpha1'],
  target: 'v1',
  ...change,
});
const gadgets = (change: Partial<DroppedApi> = {}): DroppedApi =>
  widgets({ crd: `gadgets.${group}`, ...change });

async function facts(
  who: string,
  dropped: readonly DroppedApi[],
  paging?: { readonly items: number; readonly pages: number },
): Promise<readonly string[]> {
  const opened = openLiveFacts({
    http,
    kubeconfig: toolToken(kubeconfigs.get(who) ?? ''),
    warn: (message) => warnings.push(message),
    ...(paging && { paging }),
  });
  if (opened.kind === 'Invalid') throw new Error(opened.message);
  return (await opened.facts(dropped))?.split('\n').slice(1) ?? [];
}

const NOBODY_LOOKED =
  'Where it says "not permitted to check" or is cut nobody looked: that is no evidence of safety.';

describe('live facts of a real cluster', () => {
  it('count the objects of all namespaces, page by page, by requests that only read', async () => {
    const expected = [`- widgets.${group} on v1alpha1: 4 live objects`];
    expect(await facts('everywhere', [widgets()])).toEqual(expected);
    expect(await facts('everywhere', [widgets()], { items: 1, pages: 20 })).toEqual(expected);
    expect([...methods]).toEqual(['GET']);
  });

  it('say that there are at least so many where they stop counting', async () => {
    expect(await facts('everywhere', [widgets()], { items: 1, pages: 3 })).toEqual([
      `- widgets.${group} on v1alpha1: at least 3 live objects`,
    ]);
  });

  it('say 0 where there are none, and where the cluster has no such thing', async () => {
    const unknown = widgets({ crd: 'x.unknown.example.org', group: 'unknown.example.org' });
    expect(await facts('everywhere', [gadgets({ versions: ['v1'], target: undefined }), unknown])).toEqual([
      `- gadgets.${group} on v1: 0 live objects`,
      '- x.unknown.example.org on v1alpha1: the cluster does not have it, so there are 0 live objects',
    ]);
  });

  it('say that objects go with their CRD, and when the cluster serves none of the versions', async () => {
    expect(await facts('everywhere', [widgets({ target: undefined }), gadgets()])).toEqual([
      `- widgets.${group} on v1alpha1: 4 live objects, which are deleted with the CRD`,
      `- gadgets.${group} on v1alpha1: 0 live objects (the cluster serves none of these; counted on v1)`,
    ]);
  });

  it('never take "not permitted" for zero', async () => {
    expect(await facts('nowhere', [widgets()])).toEqual([
      `- widgets.${group} on v1alpha1: not permitted to check`,
      NOBODY_LOOKED,
    ]);
  });

  it('say which namespace they saw where a Role opens only that', async () => {
    expect(await facts('here', [widgets()])).toEqual([
      `- widgets.${group} on v1alpha1: 3 live objects in namespace ${here}, not permitted to check the others`,
      NOBODY_LOOKED,
    ]);
  });

  it('stop after eight CRDs, each once, and say so', async () => {
    const many = Array.from({ length: 10 }, (_, index) => widgets({ crd: `x${index}.${group}` }));
    const lines = await facts('everywhere', [...many, ...many]);
    expect(lines).toHaveLength(10);
    expect(lines.at(-2)).toBe('- 2 more of them: nobody looked, the list is cut after 8.');
    expect(lines.at(-1)).toBe(NOBODY_LOOKED);
  });

  it('ask for no path that a chart has made up', async () => {
    const odd = [
      widgets({ crd: `../../api/v1/secrets?x.${group}` }),
      widgets({ group: 'a/../../api', crd: 'b.a/../../api' }),
      widgets({ versions: ['v1/namespaces/kube-system/secrets#'] }),
      widgets({ crd: 'with\nline.break' }),
    ];
    const lines = await facts('everywhere', odd);
    expect(lines.slice(0, 3).every((line) => line.endsWith('these are no names that a cluster has'))).toBe(
      true,
    );
    expect(lines.at(-1)).toBe(NOBODY_LOOKED);
  });

  it('are none when nothing is dropped, and when the cluster does not answer, which is told', async () => {
    expect(await facts('everywhere', [])).toEqual([]);
    const text = kubeconfigs.get('everywhere') ?? '';
    kubeconfigs.set('revoked', text.replace(/token: .*/, 'token: nobodys'));
    expect(await facts('revoked', [widgets()])).toEqual([]);
    expect(warnings.join()).toMatch(/could not be counted: .*401/);
    expect(warnings.join()).not.toContain('nobodys');
  });
});

import { describe, expect, it } from 'vitest';
import { aTree } from '../../../../test/builders/tree.ts';
import type { TreeEntry } from '../../port.ts';
import { findApplications } from './find.ts';

const find = (files: Readonly<Record<string, string | TreeEntry>>, project?: string) =>
  findApplications({ tree: aTree(files), project });

const application = (source: string, more = ''): string => `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: metallb
  namespace: argocd
spec:
  project: platform
  destination:
    server: https://kubernetes.default.svc
    namespace: metallb-system
${source}
${more}`;

const SINGLE = `  source:
    repoURL: https://charts.example.org/stable
    chart: metallb
    targetRevision: 1.10`;

describe('an Argo CD Application', () => {
  it('with one source of a chart is found, its version as it is written', async () => {
    const { applications, unread } = await find({ 'apps/metallb.yaml': application(SINGLE) });
    expect(unread).toEqual([]);
    expect(applications).toEqual([
      {
        name: 'Application argocd/metallb',
        path: 'apps/metallb.yaml',
        chart: {
          kind: 'Packed',
          reference: { repository: 'https://charts.example.org/stable', name: 'metallb', version: '1.10' },
        },
        values: [],
        release: 'metallb',
        namespace: 'metallb-system',
        project: 'platform',
        cluster: 'https://kubernetes.default.svc',
        includeCrds: true,
        gaps: [],
      },
    ]);
  });

  it('hands its values on as they are written, whatever a reader would make of them', async () => {
    const helm = `    helm:
      releaseName: lb
      skipCrds: true
      valuesObject:
        tag: 1.10
        mode: 0755
        on: yes
        empty:
        quoted: "1.0"
        text: |
          two
          lines # no comment
        list: [a, {b: ~}]`;
    const [found] = (await find({ 'a.yaml': application(`${SINGLE}\n${helm}`) })).applications;
    expect(found).toMatchObject({ release: 'lb', includeCrds: false });
    const [layer] = found?.values ?? [];
    expect(layer).toMatchObject({ kind: 'Text', path: 'a.yaml', key: 'spec.source.helm.valuesObject' });
    expect(layer?.kind === 'Text' ? layer.text : '').toBe(
      'tag: 1.10\nmode: 0755\non: yes\nempty: null\nquoted: "1.0"\ntext: |\n  two\n  lines # no comment\nlist: [ a, { b: ~ } ]\n',
    );
  });

  it('has the order of Argo CD: files, valuesObject over values, parameters', async () => {
    const helm = `    helm:
      valueFiles: [defaults.yaml, $values/env/prod.yaml]
      values: |
        never: used
      valuesObject: {a: 1}
      parameters:
        - {name: image.tag, value: "1.10", forceString: true}
        - {name: image.port, value: "80"}
        - {name: "x.list[0]", value: b}`;
    const sources = application(`  sources:
    - repoURL: https://charts.example.org
      chart: metallb
      targetRevision: 1.0.0
${helm.replace(/^/gm, '  ')}
    - repoURL: https://gitlab.example.org/group/app.git
      targetRevision: main
      ref: values`);
    const [found, ...others] = (await find({ 'a.yaml': sources, 'env/prod.yaml': 'b: 2\n' }, 'group/app'))
      .applications;
    expect(others).toEqual([]);
    expect(found?.values).toEqual([
      { kind: 'InChart', file: 'defaults.yaml' },
      { kind: 'Text', text: 'b: 2\n', path: 'env/prod.yaml' },
      { kind: 'Text', text: '{ a: 1 }\n', path: 'a.yaml', key: 'spec.sources.0.helm.valuesObject' },
      {
        kind: 'Text',
        text: '{"image":{"tag":"1.10","port":80}}',
        path: 'a.yaml',
        key: 'spec.sources.0.helm.parameters',
      },
    ]);
    expect(found?.gaps).toEqual([
      'Application argocd/metallb: the parameter x.list[0] reaches into a list and is left out.',
    ]);
  });

  it.each([
    ['../../../etc/passwd', /leads out of the repository/],
    ['missing.yaml', /is not in the repository/],
    ['link.yaml', /is a symbolic link/],
    ['linked/prod.yaml', /crosses the symbolic link/],
    ['large.yaml', /has 99999999 bytes, more than is read/],
    ['https://example.org/values.yaml', /are not fetched/],
  ])('says what it cannot know of the values file %s', async (file, words) => {
    const source = `  source:
    repoURL: https://gitlab.example.org/group/app.git
    path: charts/web
    helm:
      valueFiles: ["${file}"]`;
    const { applications } = await find({
      'a.yaml': application(source),
      'charts/web/Chart.yaml': 'name: web\nversion: 1.0.0\n',
      'charts/web/link.yaml': { kind: 'Symlink', target: '../../../secret.yaml' },
      'charts/web/linked': { kind: 'Symlink', target: '/etc' },
      'charts/web/large.yaml': { kind: 'TooLarge', size: 99_999_999 },
    });
    expect(applications).toHaveLength(1);
    expect(applications[0]).toMatchObject({ chart: { kind: 'Folder', directory: 'charts/web' }, values: [] });
    expect(applications[0]?.gaps).toEqual([expect.stringMatching(words)]);
  });

  it('that may do without a file does without it', async () => {
    const source = `  source:
    repoURL: https://gitlab.example.org/group/app.git
    path: charts/web
    helm:
      ignoreMissingValueFiles: true
      valueFiles: [missing.yaml]`;
    const files = { 'a.yaml': application(source), 'charts/web/Chart.yaml': 'name: web\nversion: 1.0.0\n' };
    expect((await find(files)).applications[0]?.gaps).toEqual([]);
  });

  it.each([
    ['registry.example.org/charts', 'chart: web', 'oci://registry.example.org/charts', 'web'],
    ['oci://registry.example.org/charts/web', 'path: .', 'oci://registry.example.org/charts', 'web'],
  ])('of a registry, %s, is found', async (url, what, repository, name) => {
    const source = `  source:\n    repoURL: ${url}\n    ${what}\n    targetRevision: 1.2.3`;
    expect((await find({ 'a.yaml': application(source) })).applications[0]?.chart).toEqual({
      kind: 'Packed',
      reference: { repository, name, version: '1.2.3' },
    });
  });

  it('of plain manifests is no chart', async () => {
    const source = '  source:\n    repoURL: https://gitlab.example.org/group/app.git\n    path: manifests';
    expect((await find({ 'a.yaml': application(source) })).applications).toEqual([]);
  });

  it('of the same name as another one is told apart by its file', async () => {
    const names = (await find({ 'one/a.yaml': application(SINGLE), 'two/a.yaml': application(SINGLE) }))
      .applications;
    expect(names.map(({ name }) => name)).toEqual([
      'Application argocd/metallb in one/a.yaml',
      'Application argocd/metallb in two/a.yaml',
    ]);
  });
});

describe('an ApplicationSet', () => {
  const set = (generators: string, revision: string): string => `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: metallb, namespace: argocd}
spec:
  generators:
${generators}
  template:
    metadata: {name: 'metallb-{{cluster}}'}
    spec:
      project: default
      destination: {name: '{{cluster}}', namespace: lb}
      source:
        repoURL: https://charts.example.org
        chart: metallb
        targetRevision: ${revision}`;

  it('is one application for each element of a list', async () => {
    const list =
      '    - list:\n        elements:\n          - {cluster: a, version: 1.0.0}\n          - {cluster: b, version: 2.0.0}';
    const { applications } = await find({ 'a.yaml': set(list, "'{{ .version }}'") });
    expect(
      applications.map(({ name, cluster, chart }) => [
        name,
        cluster,
        chart.kind === 'Packed' && chart.reference.version,
      ]),
    ).toEqual([
      ['ApplicationSet argocd/metallb (metallb-a)', 'a', '1.0.0'],
      ['ApplicationSet argocd/metallb (metallb-b)', 'b', '2.0.0'],
    ]);
    expect(applications.flatMap(({ gaps }) => gaps)).toEqual([]);
  });

  it('of clusters is taken as it stands, and says when the version is decided elsewhere', async () => {
    const clusters = '    - clusters: {}';
    expect((await find({ 'a.yaml': set(clusters, '1.2.3') })).applications[0]?.gaps).toEqual([]);
    expect((await find({ 'a.yaml': set(clusters, "'{{values.version}}'") })).applications[0]?.gaps).toEqual([
      'ApplicationSet argocd/metallb: its generator decides on the cluster what {{values.version}} is.',
    ]);
  });
});

describe('a Flux HelmRelease', () => {
  const release = (spec: string): string => `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: metallb, namespace: flux-system}
spec:
  targetNamespace: metallb
${spec}`;
  const CHART =
    '  chart:\n    spec:\n      chart: metallb\n      version: 1.2.x\n      sourceRef: {kind: HelmRepository, name: stable}';
  const repository = (url: string): string =>
    `apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: stable, namespace: flux-system}\nspec: {url: "${url}"}\n`;

  it.each(['https://charts.example.org', 'oci://registry.example.org/charts'])(
    'of a HelmRepository at %s is found',
    async (url) => {
      const { applications } = await find({ 'a.yaml': `${release(CHART)}\n---\n${repository(url)}` });
      expect(applications).toEqual([
        {
          name: 'HelmRelease flux-system/metallb',
          path: 'a.yaml',
          chart: { kind: 'Packed', reference: { repository: url, name: 'metallb', version: '1.2.x' } },
          values: [],
          release: 'metallb-metallb',
          namespace: 'metallb',
          includeCrds: true,
          gaps: [],
        },
      ]);
    },
  );

  it('of an OCIRepository is found', async () => {
    const source =
      'apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: lb, namespace: flux-system}\nspec:\n  url: oci://registry.example.org/charts/metallb\n  ref: {tag: 1.10}\n';
    const { applications } = await find({
      'a.yaml': release('  chartRef: {kind: OCIRepository, name: lb}'),
      'b.yaml': source,
    });
    expect(applications[0]?.chart).toEqual({
      kind: 'Packed',
      reference: { repository: 'oci://registry.example.org/charts', name: 'metallb', version: '1.10' },
    });
  });

  it('takes values of ConfigMaps of the repository, those that a kustomization makes too', async () => {
    const from = `${CHART}
  valuesFrom:
    - {kind: ConfigMap, name: plain}
    - {kind: ConfigMap, name: made, valuesKey: prod.yaml}
    - {kind: ConfigMap, name: one, valuesKey: tag, targetPath: image.tag}
    - {kind: Secret, name: passwords}
    - {kind: ConfigMap, name: elsewhere, optional: true}
  values: {z: 9}`;
    const { applications } = await find({
      'a.yaml': `${release(from)}\n---\n${repository('https://charts.example.org')}`,
      'maps.yaml':
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\ndata:\n  values.yaml: |\n    a: 1\n---\nkind: ConfigMap\nmetadata: {name: one, namespace: flux-system}\ndata: {tag: \'"1.10"\'}\n',
      'kustom/kustomization.yaml':
        'configMapGenerator:\n  - name: made\n    files: [prod.yaml=values/prod.yaml]\n',
      'kustom/values/prod.yaml': 'b: 2\n',
    });
    expect(applications[0]?.values).toEqual([
      { kind: 'Text', text: 'a: 1\n', path: 'maps.yaml', key: 'data.values.yaml' },
      { kind: 'Text', text: 'b: 2\n', path: 'kustom/values/prod.yaml' },
      { kind: 'Text', text: '{"image":{"tag":"1.10"}}', path: 'maps.yaml', key: 'data.tag' },
      { kind: 'Text', text: '{ z: 9 }\n', path: 'a.yaml', key: 'spec.values' },
    ]);
    expect(applications[0]?.gaps).toEqual([
      'HelmRelease flux-system/metallb: values of Secret passwords are in no repository.',
    ]);
  });

  it('whose source is not in the repository says so', async () => {
    expect((await find({ 'a.yaml': release(CHART) })).applications[0]?.gaps).toEqual([
      'HelmRelease flux-system/metallb: its HelmRepository stable is not in the repository.',
    ]);
  });
});

describe('a repository', () => {
  it('with folders of charts has one application for each that nobody names', async () => {
    const { applications } = await find({
      'charts/umbrella/Chart.yaml': 'name: umbrella\nversion: 0.1.0\n',
      'charts/umbrella/charts/inner/Chart.yaml': 'name: inner\nversion: 0.1.0\n',
      'charts/lib/Chart.yaml': 'name: lib\nversion: 0.1.0\ntype: library\n',
      'charts/broken/Chart.yaml': '{{ no chart }}',
      'charts/umbrella/templates/app.yaml':
        'kind: Application\napiVersion: argoproj.io/v1alpha1\nx: {{ .Values.x }}\n',
    });
    expect(applications.map(({ name }) => name)).toEqual(['Chart charts/umbrella']);
  });

  it('names files that may declare some and cannot be read', async () => {
    const { unread } = await find({ 'a.yaml': 'apiVersion: argoproj.io/v1alpha1\n  kind: [Application\n' });
    expect(unread).toEqual([expect.stringMatching(/^a\.yaml is no YAML that can be read: /)]);
  });

  it('follows no links', async () => {
    expect(await find({ 'a.yaml': { kind: 'Symlink', target: '/etc/passwd' } })).toEqual({
      applications: [],
      unread: [],
    });
  });

  it('with a bomb of aliases is only not read', async () => {
    const levels = Array.from(
      { length: 12 },
      (_one, index) => `a${index}: &a${index} [${`*a${index - 1},`.repeat(9)}]`,
    );
    const bomb = `apiVersion: argoproj.io/v1alpha1\nkind: Application\na0: &a0 x\n${levels.slice(1).join('\n')}\n`;
    expect((await find({ 'a.yaml': bomb })).unread).toHaveLength(1);
  });
});

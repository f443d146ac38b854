import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ensurePodman } from '../../hack/podman/podman.ts';
import { createChartSource } from '../../src/charts/source.ts';
import { gateColour, gateCounts } from '../../src/delivery/gate/counts.ts';
import { type GateOptions, gateReport } from '../../src/delivery/gate/gate.ts';
import { keptCharts } from '../../src/delivery/gate/kept-charts.ts';
import { reportMarkdown } from '../../src/delivery/gate/markdown.ts';
import { parseReport, reportJson } from '../../src/delivery/gate/report-json.ts';
import { sandboxHelm } from '../../src/delivery/helm.ts';
import type { TreeEntry } from '../../src/delivery/port.ts';
import { createHttpClient } from '../../src/http/client.ts';
import { silentLogger } from '../../src/kube/log.ts';
import { podmanSandbox } from '../../src/sandbox/podman/podman.ts';
import type { Sandbox } from '../../src/sandbox/port.ts';
import { aChart } from '../builders/charts.ts';
import { aTree } from '../builders/tree.ts';
import { type ChartServer, type OfferedChart, startChartServer } from '../fakes/charts/server.ts';

type Files = Readonly<Record<string, string | Uint8Array | TreeEntry>>;

describe('the gate report', () => {
  let sandbox: Sandbox;
  const http = createHttpClient({ limits: { retry: { attempts: 1 } } });
  let server: ChartServer | undefined;

  beforeAll(async () => {
    const image = await ensurePodman((line) => console.error(`podman: ${line}`));
    sandbox = podmanSandbox({ image, env: process.env, logger: silentLogger });
    await sandbox.start();
  });
  afterEach(async () => {
    expect(server?.faults ?? []).toEqual([]);
    await server?.close();
    server = undefined;
  });
  afterAll(async () => {
    await http.close();
    await sandbox?.cleanup();
  });

  /** Compares two states of a repository whose charts are the offered ones; `CHARTS` in a file is where they are. */
  async function gate(
    charts: readonly OfferedChart[],
    base: Files,
    head: Files,
    options: Partial<GateOptions> & { readonly timeoutMs?: number } = {},
  ) {
    const started = await startChartServer({ charts });
    server = started;
    const placed = (files: Files) =>
      Object.fromEntries(
        Object.entries(files).map(([path, file]) => [
          path,
          typeof file === 'string'
            ? file.replaceAll('OCI', started.oci).replaceAll('CHARTS', started.url)
            : file,
        ]),
      );
    const within = { below: [started.url], reach: 'Loopback' } as const;
    const result = await gateReport({
      base: aTree(placed(base), 'b'.repeat(40)),
      head: aTree(placed(head), 'c'.repeat(40)),
      charts: keptCharts(createChartSource({ http, within, plainHttp: [started.host] })),
      helm: sandboxHelm(sandbox, { timeoutMs: options.timeoutMs ?? 60_000 }),
      ...options,
    });
    // Every report survives its own JSON, and makes Markdown.
    expect(parseReport(reportJson(result.report))).toEqual(result.report);
    expect(reportMarkdown(result.report)).toMatch(/^# Gate report\n/);
    return result;
  }

  const application = (version: string, values = ''): string =>
    `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd}
spec:
  project: default
  destination: {server: https://kubernetes.default.svc, namespace: apps}
  source:
    repoURL: CHARTS
    chart: web
    targetRevision: ${version}
    helm:
      valuesObject: {${values}}
`;

  /** The one application of a bump from 1.0.0 to 2.0.0. */
  async function bump(
    before: Readonly<Record<string, string>>,
    after: Readonly<Record<string, string>>,
    values = '',
    more: Files = {},
  ) {
    const result = await gate(
      [aChart('1.0.0', before), aChart('2.0.0', after)],
      { 'app.yaml': application('1.0.0', values), ...more },
      { 'app.yaml': application('2.0.0', values), ...more },
    );
    const [one, ...others] = result.report.applications;
    if (one === undefined || others.length > 0) throw new Error('one application is touched');
    return { ...result, one };
  }

  it('of a bump that changes labels of the version only is green', async () => {
    const { report, one } = await bump({}, {});
    expect(report.changedFiles).toEqual(['app.yaml']);
    expect(gateColour(report)).toEqual({ colour: 'Green' });
    expect(one).toMatchObject({
      name: 'Application argocd/web',
      path: 'app.yaml',
      base: { chart: 'web', version: '1.0.0', appVersion: '1.0.0' },
      head: { chart: 'web', version: '2.0.0', appVersion: '2.0.0' },
      valueSources: [{ path: 'app.yaml', key: 'spec.source.helm.valuesObject' }],
      relabelled: 1,
      changed: [],
    });
  });

  it('tells what was added, removed and changed, images, and moves of API versions and namespaces', async () => {
    const object = (apiVersion: string, kind: string, name: string, spec = '', namespace = '') =>
      `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: ${name}\n${namespace === '' ? '' : `  namespace: ${namespace}\n`}${spec}`;
    const pod = (image: string) => `spec:\n  containers:\n    - name: app\n      image: ${image}\n`;
    const { report, one } = await bump(
      {
        'templates/a.yaml': object('v1', 'Pod', 'app', pod('example.org/app:1')),
        'templates/b.yaml': object('policy/v1beta1', 'PodDisruptionBudget', 'app'),
        'templates/c.yaml': object('v1', 'Service', 'old'),
        'templates/d.yaml': object('v1', 'Secret', 'key', 'stringData:\n  token: canary-one\n'),
        'templates/e.yaml': object('v1', 'Service', 'moved', '', 'one'),
      },
      {
        'templates/a.yaml': object('v1', 'Pod', 'app', pod('example.org/app:2')),
        'templates/b.yaml': object('policy/v1', 'PodDisruptionBudget', 'app'),
        'templates/c.yaml': object('v1', 'Service', 'new'),
        'templates/d.yaml': object('v1', 'Secret', 'key', 'stringData:\n  token: canary-two\n'),
        'templates/e.yaml': object('v1', 'Service', 'moved', '', 'two'),
      },
    );
    expect(one.added).toEqual([{ apiVersion: 'v1', kind: 'Service', name: 'new' }]);
    expect(one.removed).toEqual([{ apiVersion: 'v1', kind: 'Service', name: 'old' }]);
    expect(one.images).toEqual([{ from: 'example.org/app:1', to: 'example.org/app:2' }]);
    expect(one.apiVersionMoves).toEqual([
      { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', name: 'app', from: 'policy/v1beta1' },
    ]);
    expect(one.targeting).toMatchObject([
      { what: 'Namespace', from: 'one', to: 'two', object: { name: 'moved' } },
    ]);
    // In the order in which helm installs.
    expect(one.changed).toEqual([
      {
        apiVersion: 'v1',
        kind: 'Secret',
        name: 'key',
        fields: [{ path: 'stringData.token', from: '(hidden)', to: '(hidden)' }],
        more: 0,
      },
      {
        apiVersion: 'v1',
        kind: 'Pod',
        name: 'app',
        fields: [
          { path: 'spec.containers[app].image', from: '"example.org/app:1"', to: '"example.org/app:2"' },
        ],
        more: 0,
      },
    ]);
    expect(gateCounts(report)).toMatchObject({ targeting: 1, apiVersion: 1, lost: 1, unscanned: 0 });
    expect(reportJson(report) + reportMarkdown(report)).not.toContain('canary');
  });

  it('tells which settings the new chart does not know, and which defaults moved', async () => {
    const { report, one } = await bump(
      {
        'values.yaml':
          'speaker:\n  frr:\n    enabled: true\n  level: info\nold: {port: 1}\nreplicas: 1\nours: 1\n',
        'templates/x.yaml': 'a: {{ .Values.hidden }}\n',
      },
      { 'values.yaml': 'speaker:\n  frr:\n    enabled: false\n  level: debug\nreplicas: 1\nours: 2\n' },
      'old: {port: 7}, ours: 5, hidden: x, never: known',
    );
    expect(one.valuesNotDeclared).toEqual(['old.port', 'hidden']);
    expect(one.defaults).toEqual([
      { key: 'speaker.frr.enabled', from: 'true', to: 'false' },
      { key: 'speaker.level', from: '"info"', to: '"debug"' },
    ]);
    expect(gateCounts(report)).toMatchObject({ valuesDropped: 2, lost: 1 });
  });

  it('tells which API versions are gone, and each line that still declares one', async () => {
    const crd = (versions: string) =>
      `apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: peers.lb.example.org}\nspec:\n  group: lb.example.org\n  names: {kind: Peer, plural: peers}\n  versions:\n${versions}`;
    const served = (name: string, is = true) =>
      `    - {name: ${name}, served: ${is}, storage: false, schema: {}}\n`;
    const { report, one, definitions } = await bump(
      { 'crds/peers.yaml': crd(served('v1beta1') + served('v1beta2') + served('v1alpha1')) },
      { 'crds/peers.yaml': crd(served('v1beta1', false) + served('v1beta2') + served('v1')) },
      '',
      {
        'peer.yaml': '# ours\nkind: Peer\napiVersion: lb.example.org/v1beta1\nmetadata:\n  name: a\n',
        'map.yaml':
          'kind: ConfigMap\ndata:\n  peer.yaml: |\n    apiVersion: lb.example.org/v1alpha1\n    kind: Peer\n    metadata: {name: b}\n',
        'other.yaml': 'apiVersion: lb.example.org/v1beta1\nkind: Pool\nmetadata: {name: c}\n',
        'kept.yaml': 'apiVersion: lb.example.org/v1beta2\nkind: Peer\nmetadata: {name: d}\n',
      },
    );
    expect(one.droppedVersions).toEqual([
      {
        crd: 'peers.lb.example.org',
        group: 'lb.example.org',
        kind: 'Peer',
        versions: ['v1beta1', 'v1alpha1'],
        target: 'v1',
        consumers: [
          { path: 'map.yaml', line: 4, object: 'Peer/b' },
          { path: 'peer.yaml', line: 3, object: 'Peer/a' },
        ],
      },
    ]);
    expect(definitions.base).toHaveLength(1);
    expect(definitions.head).toMatchObject([{ kind: 'CustomResourceDefinition' }]);
    expect(gateCounts(report).consumers).toBe(2);
  });

  it('hands on what a migration of refused values works on', async () => {
    const schema = '{"properties":{"port":{"type":"integer"}},"additionalProperties":true}';
    const { report, one, refused } = await bump(
      { 'values.yaml': 'port: "1"\n' },
      { 'values.yaml': 'port: 1\n', 'values.schema.json': schema },
      'port: "8080"',
    );
    expect(one.schemaRefusals.join('\n')).toMatch(/port/);
    expect(one).toMatchObject({ added: [], removed: [], changed: [] });
    expect(gateCounts(report)).toMatchObject({ schema: 1, unrenderable: 0 });
    const values = refused.get('Application argocd/web');
    expect(values?.head.schema).toBe(schema);
    expect(values?.base?.values).toBe('port: "1"\n');
    const { chart: _chart, ...request } = values?.request ?? { chart: undefined };
    expect(request).toMatchObject({ release: 'web', namespace: 'apps', values: ['{ port: "8080" }\n'] });
  });

  it('tells moves of an application itself, and applications that are new or gone', async () => {
    const head = application('1.0.0')
      .replace('namespace: apps', 'namespace: other')
      .replace('project: default', 'project: platform');
    const { report } = await gate(
      [aChart('1.0.0')],
      {
        'app.yaml': application('1.0.0'),
        'gone.yaml': application('1.0.0').replace('name: web', 'name: gone'),
      },
      { 'app.yaml': head, 'new.yaml': application('1.0.0').replace('name: web', 'name: new') },
    );
    expect(
      report.applications.map(({ name, base: one, head: other }) => [name, one?.version, other?.version]),
    ).toEqual([
      ['Application argocd/web', '1.0.0', '1.0.0'],
      ['Application argocd/new', undefined, '1.0.0'],
      ['Application argocd/gone', '1.0.0', undefined],
    ]);
    expect(report.applications[0]?.targeting).toEqual([
      { what: 'Namespace', from: 'apps', to: 'other' },
      { what: 'Project', from: 'default', to: 'platform' },
    ]);
    expect(report.applications[1]?.added).toHaveLength(1);
    expect(report.applications[2]?.removed).toHaveLength(1);
  });

  it('looks at nothing that the merge request does not touch', async () => {
    const { report } = await gate(
      [],
      { 'app.yaml': application('1.0.0'), 'README.md': 'one' },
      { 'app.yaml': application('1.0.0'), 'README.md': 'two' },
    );
    expect(report).toMatchObject({
      changedFiles: ['README.md'],
      applications: [],
      notCovered: ['No application that is known here is touched by what the merge request changes.'],
    });
    expect(server?.requests).toEqual([]);
  });

  it('fetches the charts that a folder of the repository depends on, and those below file://', async () => {
    const umbrella = (version: string) =>
      `apiVersion: v2\nname: platform\nversion: 0.1.0\ndependencies:\n  - {name: web, version: "${version}", repository: OCI}\n  - {name: common, version: 0.1.0, repository: "file://../common"}\n`;
    const files = {
      'charts/platform/values.yaml': 'web:\n  replicas: 3\n  old: x\n',
      'charts/common/Chart.yaml': 'apiVersion: v2\nname: common\nversion: 0.1.0\n',
      'charts/common/templates/c.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: common}\n',
    };
    const { report } = await gate(
      [
        aChart('1.0.0', { 'values.yaml': 'replicas: 1\nold: a\nfeature: true\n' }),
        aChart('2.0.0', { 'values.yaml': 'replicas: 1\nfeature: false\n' }),
      ],
      { 'charts/platform/Chart.yaml': umbrella('1.0.0'), ...files },
      { 'charts/platform/Chart.yaml': umbrella('2.0.0'), ...files },
    );
    expect(report.notCovered).toEqual([]);
    expect(report.applications).toMatchObject([
      {
        name: 'Chart charts/platform',
        unrenderable: {},
        defaults: [{ key: 'web.feature', from: 'true', to: 'false' }],
        valuesNotDeclared: ['web.old'],
        valueSources: [{ path: 'charts/platform/values.yaml' }],
        relabelled: 1,
      },
    ]);
  });

  it('follows Flux releases with values in ConfigMaps', async () => {
    const release = `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: flux-system}
spec:
  chart: {spec: {chart: web, version: VERSION, sourceRef: {kind: HelmRepository, name: charts}}}
  valuesFrom: [{kind: ConfigMap, name: web-values}]
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: flux-system}
spec: {type: oci, url: "OCI"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web-values, namespace: flux-system}
data:
  values.yaml: |
    replicas: 5
`;
    const { report } = await gate(
      [aChart('1.0.0'), aChart('1.4.0', { 'values.yaml': 'replicas: 2\nmore: 1\n' })],
      { 'a.yaml': release.replace('VERSION', '1.0.0') },
      { 'a.yaml': release.replace('VERSION', '1.x') },
    );
    expect(report.applications).toMatchObject([
      {
        name: 'HelmRelease flux-system/web',
        head: { version: '1.4.0' },
        changed: [],
        defaults: [{ key: 'more', to: '1' }],
      },
    ]);
  });

  it('looks into the applications that a chart of the repository renders', async () => {
    const template = application('{{ .Values.version }}').replace(
      'valuesObject: {}',
      'valuesObject: {replicas: 4}',
    );
    const files = (version: string) => ({
      'apps/Chart.yaml': 'apiVersion: v2\nname: apps\nversion: 0.1.0\n',
      'apps/values.yaml': `version: ${version}\n`,
      'apps/templates/web.yaml': template,
    });
    const { report } = await gate(
      [
        aChart('1.0.0'),
        aChart('2.0.0', { 'templates/more.yaml': 'apiVersion: v1\nkind: Service\nmetadata: {name: more}\n' }),
      ],
      files('1.0.0'),
      files('2.0.0'),
    );
    expect(report.applications.map(({ name }) => name)).toEqual(['Chart apps', 'Application argocd/web']);
    expect(report.applications[1]?.added).toEqual([{ apiVersion: 'v1', kind: 'Service', name: 'more' }]);
  });

  it('does not take for a change what a chart makes up each time', async () => {
    const random = {
      'templates/r.yaml':
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: r}\ndata:\n  a: {{ randAlphaNum 20 }}\n  b: {{ .Chart.Version | quote }}\n',
    };
    const { one } = await bump(random, random);
    expect(one.changed).toEqual([
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        name: 'r',
        fields: [{ path: 'data.b', from: '"1.0.0"', to: '"2.0.0"' }],
        more: 0,
      },
    ]);
  });

  describe('has one clear sentence', () => {
    const failing = async (after: OfferedChart, values = '', timeoutMs?: number) => {
      const { report } = await gate(
        [aChart('1.0.0'), after],
        { 'app.yaml': application('1.0.0', values) },
        { 'app.yaml': application('2.0.0', values) },
        timeoutMs === undefined ? {} : { timeoutMs },
      );
      expect(gateColour(report).colour).toBe('Red');
      const [one] = report.applications;
      return one?.unrenderable.head ?? one?.schemaRefusals.join(' ') ?? '';
    };

    it('for a chart that cannot be fetched', async () => {
      expect(await failing(aChart('3.0.0'))).toMatch(
        /^The chart web 2\.0\.0 cannot be fetched: .*none that fits\.$/,
      );
    });

    it('for a chart that does not render', async () => {
      expect(await failing(aChart('2.0.0', { 'templates/x.yaml': '{{ fail "set the region" }}' }))).toMatch(
        /set the region/,
      );
    });

    it('for a template without an end', async () => {
      const loop =
        '{{ range until 100000 }}{{ range until 100000 }}{{ sha256sum "x" | trunc 0 }}{{ end }}{{ end }}';
      expect(await failing(aChart('2.0.0', { 'templates/x.yaml': loop }), '', 5_000)).toMatch(
        /^helm was not done after 5 s/,
      );
    });

    it('for an archive that only grows when it is unpacked', async () => {
      const bomb = aChart('2.0.0', { 'files/zeros.bin': Buffer.alloc(70 << 20) });
      expect(bomb.bytes.length).toBeLessThan(1 << 20);
      expect(await failing(bomb)).toBe('The archive of chart web 2.0.0 unpacks to more than 64 MiB.');
    });

    it('for a schema that is a cycle', async () => {
      const words = await failing(
        aChart('2.0.0', {
          'values.schema.json':
            '{"$ref":"#/definitions/a","definitions":{"a":{"$ref":"#/definitions/b"},"b":{"$ref":"#/definitions/a"}}}',
        }),
      );
      expect(words).toMatch(/reference cycle/);
    });

    it('for values of 5 MB, which are rendered and not compared', async () => {
      const lines = Array.from({ length: 100_000 }, (_one, index) => `key${index}: ${'v'.repeat(42)}\n`).join(
        '',
      );
      const source = (version: string) =>
        application(version)
          .replace('valuesObject: {}', 'valueFiles: [$own/values.yaml]')
          .replace(
            '  source:',
            '  sources:\n  - ref: own\n    repoURL: https://gitlab.example.org/group/app.git\n  -',
          )
          .replace(/^ {4}(chart|targetRevision|helm)/gm, '    $1')
          .replace('-\n    repoURL', '- repoURL');
      const { report } = await gate(
        [aChart('1.0.0'), aChart('2.0.0')],
        { 'app.yaml': source('1.0.0'), 'values.yaml': lines },
        { 'app.yaml': source('2.0.0'), 'values.yaml': lines },
      );
      expect(report.applications[0]?.unrenderable).toEqual({});
      expect(report.notCovered).toEqual([
        'Application argocd/web: its values are too large to be compared with what the chart declares, or no mapping.',
      ]);
    });

    it('for a chart of the repository with a link out of it', async () => {
      const chart = (version: string): Files => ({
        'web/Chart.yaml': `apiVersion: v2\nname: web\nversion: ${version}\n`,
        'web/templates/x.yaml': { kind: 'Symlink', target: '../../../etc/passwd' },
      });
      const { report } = await gate([], chart('1.0.0'), chart('2.0.0'));
      expect(report.applications[0]?.unrenderable.head).toBe(
        'The chart in web holds the symbolic link web/templates/x.yaml, which is not followed.',
      );
    });

    it('for more applications than are rendered', async () => {
      const many = (version: string) =>
        Array.from({ length: 5 }, (_one, index) =>
          application(version).replace('name: web', `name: web${index}`),
        ).join('---\n');
      const { report } = await gate(
        [aChart('1.0.0'), aChart('2.0.0')],
        { 'app.yaml': many('1.0.0') },
        { 'app.yaml': many('2.0.0') },
        { maxApplications: 2 },
      );
      expect(report.applications).toHaveLength(2);
      expect(report.notCovered).toEqual(['3 more applications change; only the first 2 were rendered.']);
    });
  });
});

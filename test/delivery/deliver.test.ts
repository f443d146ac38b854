import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ensurePodman } from '../../hack/podman/podman.ts';
import { createChartSource } from '../../src/charts/source.ts';
import { type DeliveryOutcome, type DeliverySettings, deliver } from '../../src/delivery/deliver.ts';
import { sandboxHelm } from '../../src/delivery/helm.ts';
import { ALL_LEVERS } from '../../src/delivery/levers.ts';
import { deliveryQuestions } from '../../src/delivery/prompts/ask-delivery.ts';
import { loadDeliveryPrompts } from '../../src/delivery/prompts/files.ts';
import { createHttpClient } from '../../src/http/client.ts';
import { silentLogger } from '../../src/kube/log.ts';
import { podmanSandbox } from '../../src/sandbox/podman/podman.ts';
import type { Sandbox } from '../../src/sandbox/port.ts';
import { aChart } from '../builders/charts.ts';
import { aTree } from '../builders/tree.ts';
import { type ChartServer, type OfferedChart, startChartServer } from '../fakes/charts/server.ts';

const SETTINGS: DeliverySettings = {
  allow: ['apps/**'],
  deny: [],
  allOrNothing: true,
  maxDocuments: 5,
  explainGreen: true,
  migrateDroppedVersions: true,
  structuralMigration: true,
};
const verdict = (over: object) => ({
  classification: 'escalate',
  summary: 'In one sentence',
  reasoning: 'What comes next',
  edits: [],
  escalationReason: '',
  ...over,
});

describe('deliver', () => {
  let sandbox: Sandbox;
  const http = createHttpClient({ limits: { retry: { attempts: 1 } } });
  let server: ChartServer | undefined;

  beforeAll(async () => {
    const image = await ensurePodman((line) => console.error(`podman: ${line}`));
    sandbox = podmanSandbox({ image, env: process.env, logger: silentLogger });
    await sandbox.start();
  });
  afterEach(async () => {
    await server?.close();
    server = undefined;
  });
  afterAll(async () => {
    await http.close();
    await sandbox?.cleanup();
  });

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
      valuesObject:
${values.replaceAll(/^(?=.)/gm, '        ')}`;

  /** A bump of one application from 1.0.0 to 2.0.0, with what the model answers. */
  async function delivered(options: {
    readonly charts: readonly OfferedChart[];
    readonly values?: string;
    readonly more?: Readonly<Record<string, string>>;
    readonly answers?: readonly unknown[];
    readonly settings?: Partial<DeliverySettings>;
  }) {
    const started = await startChartServer({ charts: options.charts });
    server = started;
    const files = (version: string) =>
      Object.fromEntries(
        Object.entries({ 'apps/web.yaml': application(version, options.values), ...options.more }).map(
          ([path, text]) => [path, text.replaceAll('CHARTS', started.url)],
        ),
      );
    const asked: { readonly name: string; readonly system: string; readonly user: string }[] = [];
    const testified: (readonly string[])[] = [];
    const questions = deliveryQuestions(
      async (question) => {
        const value = options.answers?.[asked.length];
        asked.push(question);
        return value === undefined
          ? { kind: 'Unreachable', message: 'no answer is scripted' }
          : { kind: 'Answered', value };
      },
      await loadDeliveryPrompts(),
      ALL_LEVERS,
    );
    const head = aTree(files('2.0.0'), 'c'.repeat(40));
    const { outcome, report } = await deliver(
      {
        bump: {
          project: 'group/app',
          iid: 7,
          title: 'Move web to 2.0.0',
          headSha: head.sha,
          baseSha: 'b'.repeat(40),
          sourceBranch: 'bump',
          targetBranch: 'main',
          labels: [],
          fork: false,
        },
        base: aTree(files('1.0.0'), 'b'.repeat(40)),
        head,
        settings: { ...SETTINGS, ...options.settings },
      },
      {
        charts: createChartSource({
          http,
          within: { below: [started.url], reach: 'Loopback' },
          plainHttp: [started.host],
        }),
        helm: sandboxHelm(sandbox, { timeoutMs: 60_000 }),
        questions,
        live: async () => undefined,
        testimony: async (_, subjects) => {
          testified.push(subjects);
          return { notes: 'the notes say v9.9.9' };
        },
      },
    );
    return { outcome, report, asked, testified };
  }

  const textOf = (outcome: DeliveryOutcome, path: string): string => {
    if (outcome.kind !== 'Push') throw new Error(JSON.stringify(outcome));
    return new TextDecoder().decode(outcome.files.find((file) => file.path === path)?.bytes);
  };
  /** Renders a Service for each mode that is on; from 2.0.0 they exclude each other. */
  const modes = (version: string) =>
    aChart(version, {
      'values.yaml': 'bgp: {native: true, daemon: false}\n',
      'templates/map.yaml': '',
      'templates/native.yaml': `{{ if and .Values.bgp.native (or (not .Values.bgp.daemon) ${version.startsWith('1')}) }}
apiVersion: v1
kind: Service
metadata: {name: native}
{{ end }}`,
    });

  it('repairs a bump whose new version reads two settings differently, and renders it once more', async () => {
    const values = 'bgp:\n  native: true # as before\n  daemon: true\n';
    const edits = [
      {
        path: 'apps/web.yaml',
        key: 'spec.source.helm.valuesObject.bgp.daemon',
        from: 'true',
        to: 'false',
        rationale: 'r',
      },
    ];
    const { outcome, report, asked, testified } = await delivered({
      charts: [modes('1.0.0'), modes('2.0.0')],
      values,
      answers: [verdict({ classification: 'mechanical', edits })],
    });
    expect(report.applications[0]?.removed).toMatchObject([{ name: 'native' }]);
    expect(outcome).toMatchObject({ kind: 'Push', change: { kind: 'Edits' }, after: [] });
    expect(textOf(outcome, 'apps/web.yaml')).toContain('native: true # as before\n          daemon: false\n');
    expect(asked.map(({ name }) => name)).toEqual(['verdict']);
    // The mechanical path reads nothing upstream: what is in no evidence corroborates nothing.
    expect(testified).toEqual([]);
    expect(asked[0]?.user).not.toContain('v9.9.9');
  });

  it('explains a green bump with what was written upstream, and edits nothing', async () => {
    const { outcome, asked, testified } = await delivered({
      charts: [
        aChart('1.0.0'),
        aChart('2.0.0', { 'templates/more.yaml': 'apiVersion: v1\nkind: Service\nmetadata: {name: more}\n' }),
      ],
      answers: [verdict({ classification: 'no_action' })],
    });
    expect(outcome).toMatchObject({ kind: 'Explained', look: false });
    expect(testified).toEqual([['more', 'Service']]);
    expect(asked[0]?.user).toContain('v9.9.9');
  });

  const CRD = (served: string, spec: string) =>
    `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: peers.lb.example.org}
spec:
  group: lb.example.org
  names: {kind: Peer, plural: peers}
  versions:
    - name: ${served}
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: ${spec}
`;
  const PEER =
    'apiVersion: lb.example.org/v1beta1\nkind: Peer\nmetadata:\n  name: a\nspec:\n  address: 10.0.0.1 # rack 1\n';
  const crds = [
    aChart('1.0.0', {
      'crds/p.yaml': CRD('v1beta1', '{type: object, properties: {address: {type: string}}}'),
    }),
    aChart('2.0.0', {
      'crds/p.yaml': CRD('v1', '{type: object, required: [peer], properties: {peer: {type: string}}}'),
    }),
  ];

  it('moves manifests off a version that goes away, and their fields with it', async () => {
    const document = PEER.replace('v1beta1', 'v1').replace('address', 'peer');
    const { outcome, asked, testified } = await delivered({
      charts: crds,
      more: { 'apps/peer.yaml': PEER },
      answers: [{ document, notes: 'address is peer now' }],
    });
    expect(outcome).toMatchObject({ kind: 'Push', change: { kind: 'Restructured', lost: [] } });
    expect(textOf(outcome, 'apps/peer.yaml')).toBe(PEER.replace('v1beta1', 'v1').replace('address', 'peer'));
    expect(asked.map(({ name }) => name)).toEqual(['migration']);
    expect(testified).toEqual([]);
  });

  it('G10: pushes nothing when a document cannot be moved, not even the version that could', async () => {
    const { outcome } = await delivered({
      charts: crds,
      more: { 'apps/peer.yaml': PEER },
      answers: [
        { document: PEER.replace('v1beta1', 'v1').replace('address: 10.0.0.1', 'peer: 10.0.0.2'), notes: '' },
      ],
    });
    expect(outcome).toMatchObject({
      kind: 'Escalate',
      reasons: [expect.stringMatching(/spec.peer has "10.0.0.2"/)],
    });
  });

  const schema = (properties: string) =>
    `{"type":"object","additionalProperties":false,"properties":{"replicas":{},"global":{},${properties}}}`;
  const valued = [
    aChart('1.0.0', { 'values.schema.json': schema('"port":{"type":"integer"},"mode":{"type":"string"}') }),
    aChart('2.0.0', { 'values.schema.json': schema('"listenPort":{"type":"integer"}') }),
  ];
  const VALUES = 'port: 8080 # public\nmode: strict\nreplicas: 2\n';

  it('moves values that the new chart refuses, and names what was lost', async () => {
    const { outcome, asked } = await delivered({
      charts: valued,
      values: VALUES,
      answers: [{ document: 'listenPort: 8080\nreplicas: 2\n', notes: 'port is listenPort' }],
    });
    expect(outcome).toMatchObject({
      kind: 'Push',
      change: { kind: 'Values', lost: [{ key: 'mode', value: 'strict' }] },
      after: [],
    });
    expect(textOf(outcome, 'apps/web.yaml')).toContain(
      'valuesObject:\n        listenPort: 8080 # public\n        replicas: 2\n',
    );
    expect(asked[0]?.user).toContain('- port -> listenPort (integer)\n');
  });

  it.each<[string, Parameters<typeof delivered>[0], RegExp]>([
    [
      'a chart that cannot be fetched',
      { charts: [aChart('1.0.0')] },
      /does not render at the new version: .*2\.0\.0/,
    ],
    [
      'a chart that does not render',
      {
        charts: [
          aChart('1.0.0'),
          aChart('2.0.0', { 'templates/bad.yaml': '{{ fail "set a region first" }}' }),
        ],
      },
      /does not render at the new version: .*set a region first/,
    ],
  ])('escalates %s with one clear sentence, and asks no model', async (_, options, reason) => {
    const { outcome, asked, testified } = await delivered(options);
    expect(outcome).toMatchObject({ kind: 'Escalate', reasons: [expect.stringMatching(reason)] });
    expect(asked).toEqual([]);
    expect(testified).toHaveLength(1);
  });

  it('lever 5: escalates an edit that is sound in itself and clears nothing', async () => {
    const values = 'bgp:\n  native: true\n  daemon: true\nreplicas: 1\n';
    const key = 'spec.source.helm.valuesObject.replicas';
    const edits = [{ path: 'apps/web.yaml', key, from: '1', to: '2', rationale: 'r' }];
    const { outcome } = await delivered({
      charts: [modes('1.0.0'), modes('2.0.0')],
      values,
      answers: [verdict({ classification: 'mechanical', edits })],
    });
    expect(outcome).toMatchObject({
      kind: 'Escalate',
      reason: 'the edits do not clear what the gate found',
      withheld: [{ key }],
    });
  });

  it('escalates an edit after which the chart would not render', async () => {
    const strict = aChart('2.0.0', {
      'values.yaml': 'mode: a\n',
      'templates/map.yaml': '{{ if ne .Values.mode "a" }}{{ fail "only a" }}{{ end }}',
    });
    const edits = [
      {
        path: 'apps/web.yaml',
        key: 'spec.source.helm.valuesObject.mode',
        from: 'a',
        to: 'b',
        rationale: 'r',
      },
    ];
    const { outcome } = await delivered({
      charts: [aChart('1.0.0', { 'values.yaml': 'mode: a\n' }), strict],
      values: 'mode: a\n',
      answers: [verdict({ classification: 'mechanical', edits })],
    });
    expect(outcome).toMatchObject({
      kind: 'Escalate',
      reason: 'helm refuses the repaired repository',
      reasons: [expect.stringMatching(/only a/)],
      withheld: [{ key: 'spec.source.helm.valuesObject.mode' }],
    });
  });
});

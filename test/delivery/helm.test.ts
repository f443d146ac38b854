import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensurePodman } from '../../hack/podman/podman.ts';
import { packChart } from '../../src/delivery/chart/pack.ts';
import { sandboxHelm } from '../../src/delivery/helm.ts';
import type { HelmRequest } from '../../src/delivery/port.ts';
import { silentLogger } from '../../src/kube/log.ts';
import { podmanSandbox } from '../../src/sandbox/podman/podman.ts';
import { type ExecOptions, type Sandbox, SandboxUnavailableError, SCRATCH } from '../../src/sandbox/port.ts';

const file = (path: string, text: string) => ({ path, bytes: Buffer.from(text) });

/** A chart whose one ConfigMap says what it was given. */
function chart(files: Readonly<Record<string, string>> = {}): Uint8Array {
  const all = {
    'Chart.yaml': 'apiVersion: v2\nname: web\nversion: 1.0.0\n',
    'values.yaml': 'greeting: hello\n',
    'templates/map.yaml':
      'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n  namespace: {{ .Release.Namespace }}\ndata:\n  greeting: {{ .Values.greeting | quote }}\n',
    ...files,
  };
  return packChart(
    'web',
    Object.entries(all).map(([path, text]) => file(path, text)),
  );
}

const request = (changes: Partial<HelmRequest> = {}): HelmRequest => ({
  chart: chart(),
  values: [],
  release: 'web',
  namespace: 'apps',
  ...changes,
});

describe('helm in a sandbox', () => {
  let sandbox: Sandbox;
  beforeAll(async () => {
    const image = await ensurePodman((line) => console.error(`podman: ${line}`));
    sandbox = podmanSandbox({ image, env: process.env, logger: silentLogger });
    await sandbox.start();
  });
  afterAll(() => sandbox?.cleanup());

  const words = async (changes: Partial<HelmRequest>) => {
    const result = await sandboxHelm(sandbox, { timeoutMs: 60_000 }).template(request(changes));
    return result.kind === 'Rendered' ? result.manifests : `${result.kind}: ${result.message}`;
  };

  it('renders with the values, the last ones over the others', async () => {
    const manifests = await words({ values: ['greeting: one\n', 'greeting: two\n'] });
    expect(manifests).toContain('greeting: "two"');
    expect(manifests).toContain('name: web\n  namespace: apps');
  });

  it('takes names for what they are: neither flags nor words of a shell', async () => {
    const result = await words({ release: "--debug'; touch /tmp/data/owned; '" });
    expect(result).toMatch(/^Failed: .*release name/s);
    const { stdout } = await sandbox.exec(`ls -A ${SCRATCH}`);
    expect(Buffer.from(stdout).toString()).toBe('');
  });

  it('tells charts of the API versions that the cluster has, and of its own Kubernetes', async () => {
    const templates = {
      'templates/map.yaml':
        'a: {{ .Capabilities.APIVersions.Has "example.org/v1" }}\nb: {{ .Capabilities.KubeVersion.Minor }}\n',
    };
    expect(await words({ chart: chart(templates) })).toMatch(/a: false\nb: (3[4-9]|4\d)/);
    expect(
      await words({ chart: chart(templates), apiVersions: ['example.org/v1'], kubeVersion: '1.31.0' }),
    ).toMatch(/a: true\nb: 31/);
  });

  it('renders definitions only when they are asked for, and tests never', async () => {
    const files = {
      'crds/thing.yaml': 'kind: CustomResourceDefinition\n',
      'templates/test.yaml': 'kind: Pod\nmetadata:\n  name: probe\n  annotations:\n    helm.sh/hook: test\n',
    };
    expect(await words({ chart: chart(files) })).not.toContain('CustomResourceDefinition');
    const all = await words({ chart: chart(files), includeCrds: true });
    expect(all).toContain('CustomResourceDefinition');
    expect(all).not.toContain('probe');
  });

  it.each([
    [
      'values that the schema refuses',
      { chart: chart({ 'values.schema.json': '{"properties":{"greeting":{"type":"integer"}}}' }) },
      /^SchemaRefused: values don't meet.*greeting/s,
    ],
    [
      'a schema with a cycle is used as it is',
      {
        chart: chart({
          'values.schema.json':
            '{"$ref":"#/definitions/a","definitions":{"a":{"properties":{"child":{"$ref":"#/definitions/a"},"greeting":{"type":"integer"}}}}}',
        }),
      },
      /^SchemaRefused: .*greeting/s,
    ],
    [
      'a schema that is nothing but a cycle',
      { chart: chart({ 'values.schema.json': '{"$ref":"#"}' }) },
      /^(Failed|SchemaRefused): .*(infinite|recursi|cycl|loop|circular)|ConfigMap/s,
    ],
    [
      'a schema that refers to the network',
      { chart: chart({ 'values.schema.json': '{"$ref":"https://example.org/schema.json"}' }) },
      /^(Failed|SchemaRefused): .*example\.org/s,
    ],
    [
      'a template that fails',
      { chart: chart({ 'templates/map.yaml': '{{ fail "set the region" }}' }) },
      /^Failed: .*set the region/s,
    ],
    [
      'a chart that it needs and has not',
      {
        chart: chart({
          'Chart.yaml':
            'apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n  - name: redis\n    version: 1.0.0\n    repository: https://example.org/\n',
        }),
      },
      /^Failed: the chart needs charts that are not in it: redis$/,
    ],
    ['an archive that is none', { chart: Buffer.from('nothing') }, /^Failed: /],
    ['values that are no YAML', { values: ['a: [1'] }, /^Failed: .*values-0\.yaml/s],
  ])('has words for %s', async (_what, changes, expected) => {
    expect(await words(changes)).toMatch(expected);
  });

  it('is ended when a template has no end', async () => {
    const loop = chart({
      'templates/map.yaml':
        '{{ range until 100000 }}{{ range until 100000 }}{{ sha256sum "x" | trunc 0 }}{{ end }}{{ end }}',
    });
    const result = await sandboxHelm(sandbox, { timeoutMs: 3_000 }).template(request({ chart: loop }));
    expect(result).toMatchObject({ kind: 'Failed', reason: 'Timeout' });
    expect(await words({})).toContain('greeting: "hello"');
  });

  it('renders several at once, each with a result of its own, and one without an end takes no other with it', async () => {
    const helm = sandboxHelm(sandbox);
    const loop = chart({
      'templates/map.yaml':
        '{{ range until 100000 }}{{ range until 100000 }}{{ sha256sum "x" | trunc 0 }}{{ end }}{{ end }}',
    });
    const results = await helm.templates?.([
      request({ values: ['greeting: one\n'] }),
      request({ chart: chart({ 'templates/map.yaml': '{{ fail "set the region" }}' }) }),
      request({ values: ['greeting: "zwei ä\\nx"\n'] }),
    ]);
    expect(results?.map(({ kind }) => kind)).toEqual(['Rendered', 'Failed', 'Rendered']);
    expect(JSON.stringify(results?.[2])).toContain('zwei ä');
    const patient = sandboxHelm(sandbox, { timeoutMs: 10_000 });
    const mixed = await patient.templates?.([request(), request({ chart: loop })]);
    expect(mixed).toMatchObject([{ kind: 'Rendered' }, { kind: 'Failed', reason: 'Timeout' }]);
  });

  it('renders no more than is read', async () => {
    const large = chart({ 'templates/map.yaml': 'a: {{ repeat 3000000 "x" }}\n' });
    const result = await sandboxHelm(sandbox, { maxOutputBytes: 1024 * 1024 }).template(
      request({ chart: large }),
    );
    expect(result).toMatchObject({ kind: 'Failed', reason: 'TooLarge' });
  });

  it('takes values of 5 MB', async () => {
    const lines = Array.from({ length: 100_000 }, (_one, index) => `key${index}: ${'v'.repeat(42)}\n`);
    expect(await words({ values: [lines.join(''), 'greeting: large\n'] })).toContain('greeting: "large"');
  });

  it('leaves nothing behind, whatever became of it', async () => {
    await Promise.all([words({}), words({}), words({ values: ['a: [1'] })]);
    await sandboxHelm(sandbox, { timeoutMs: 1 }).template(request());
    const { stdout } = await sandbox.exec(`ls -A ${SCRATCH}`);
    expect(Buffer.from(stdout).toString()).toBe('');
  });

  it('that is not in the image makes the sandbox unusable, in one sentence', async () => {
    const without: Sandbox = Object.create(sandbox, {
      exec: {
        value: (command: string, options: ExecOptions) =>
          sandbox.exec(`PATH=/nonexistent\n${command}`, options),
      },
    });
    await expect(sandboxHelm(without).template(request())).rejects.toThrow(SandboxUnavailableError);
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEFINITIONS, type Definition } from '../../src/crds/definitions.ts';
import { objectSchema } from '../../src/crds/manifest.ts';
import type { Structural } from '../../src/crds/structural.ts';
import { FULL, OTHER_ARM } from './full.ts';
import { cleanUp, kubectl, type Namespaces, prepare } from './kubectl.ts';
import { type Manifest, SAMPLES, type Sample, sample, sampleFile } from './objects.ts';

let namespaces: Namespaces;
beforeAll(async () => {
  namespaces = await prepare();
});
afterAll(() => cleanUp(namespaces));

it.each([
  'namespaces',
  'secrets.example',
  'agentworkflow-code-review',
  'agentworkflow-konflux',
  'agentworkflow-mcp',
  'agentworkflow-chart-bumps',
  'sandboxpool-machines',
])('config/samples/%s.yaml is taken', async (name) => {
  for (const object of await sampleFile(name, namespaces)) {
    await kubectl(['apply', '--dry-run=server', '-f', '-'], object);
  }
});

it('every Secret that a sample names is in the example, with the key and a tier', async () => {
  const secrets = await sampleFile('secrets.example', namespaces);
  const workflows = await Promise.all(
    [
      'agentworkflow',
      'agentworkflow-code-review',
      'agentworkflow-konflux',
      'agentworkflow-mcp',
      'agentworkflow-chart-bumps',
    ].map((name) => sampleFile(name, namespaces)),
  );
  const references = [
    ...JSON.stringify(workflows).matchAll(/SecretRef":\{"name":"([^"]+)","key":"([^"]+)"\}/g),
  ];
  expect(references).not.toHaveLength(0);
  for (const [, name = '', key = ''] of references) {
    expect(secrets.find((secret) => secret.metadata.name === name)).toMatchObject({
      metadata: { labels: { 'hummingbird.dev/token-tier': expect.stringMatching(/^(action|tool|model)$/) } },
      stringData: { [key]: expect.any(String) },
    });
  }
});

describe.each(SAMPLES)('%s', (kind) => {
  const definition = definitionOf(kind);

  it('sample is taken as it stands, and its defaults are those of the zod schema', async () => {
    const object = await sample(kind, namespaces);
    await kubectl(['apply', '-f', '-'], object);
    expect((await stored(object)).spec).toEqual(definition.spec.parse(object.spec));
  });

  it('has an object in this test with every field that the schema knows', () => {
    const other = kind === 'agentsession' ? {} : OTHER_ARM[kind];
    const present = new Set([...paths(FULL[kind]), ...paths(other)]);
    const known = Object.entries(objectSchema(definition).properties ?? {});
    const wanted = known
      .filter(([name]) => name === 'spec' || name === 'status')
      .flatMap(([name, schema]) => schemaPaths(schema, `.${name}`));
    // builtin is what the sample uses.
    const missing = wanted.filter((path) => !present.has(path) && path !== '.spec.prompt.builtin');
    expect(missing).toEqual([]);
  });

  it('with every field set comes back as it was written, and parses to itself', async () => {
    const { spec, status } = FULL[kind];
    const object = manifest(definition, 'full', spec);
    await kubectl(['create', '-f', '-'], object);
    const patch = JSON.stringify({ status });
    await kubectl(['patch', '-f', '-', '--subresource=status', '--type=merge', '-p', patch], object);
    const back = await stored(object);
    expect(back.spec).toEqual(spec);
    expect(back.status).toEqual(status);
    expect(definition.spec.parse(back.spec)).toEqual(spec);
    expect(definition.status.parse(back.status)).toEqual(status);
  });
});

it.each([
  ['agentrun', OTHER_ARM.agentrun.spec],
  ['sandboxpool', OTHER_ARM.sandboxpool.spec],
  ['agentworkflow', OTHER_ARM.agentworkflow.spec],
] as const)('%s in its other form gets the defaults of the zod schema too', async (kind, spec) => {
  const object = manifest(definitionOf(kind), 'other', spec);
  await kubectl(['create', '-f', '-'], object);
  expect((await stored(object)).spec).toEqual(definitionOf(kind).spec.parse(spec));
});

function definitionOf(kind: Sample): Definition {
  const definition = DEFINITIONS.find((one) => one.kind.kind.toLowerCase() === kind);
  if (definition === undefined) throw new Error(`no definition of ${kind}`);
  return definition;
}

function manifest(definition: Definition, name: string, spec: unknown): Manifest {
  const { apiVersion, kind } = definition.kind;
  return { apiVersion, kind, metadata: { name, namespace: namespaces.agents }, spec };
}

async function stored({ kind, metadata: { name, namespace } }: Manifest): Promise<Manifest> {
  return JSON.parse(await kubectl(['get', kind.toLowerCase(), name, '-n', String(namespace), '-o', 'json']));
}

/** `.spec.projects[].path` for every field that is there. */
function paths(value: unknown, here = ''): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((item) => paths(item, `${here}[]`));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [
    `${here}.${name}`,
    ...paths(inner, `${here}.${name}`),
  ]);
}

/** The same for every named field of a schema; what stands in a map has no names. */
function schemaPaths(schema: Structural, here: string): readonly string[] {
  const items = schema.items === undefined ? [] : schemaPaths(schema.items, `${here}[]`);
  const named = Object.entries(schema.properties ?? {});
  return [
    ...items,
    ...named.flatMap(([name, field]) => [`${here}.${name}`, ...schemaPaths(field, `${here}.${name}`)]),
  ];
}

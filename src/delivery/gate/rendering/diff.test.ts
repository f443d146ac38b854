import { describe, expect, it } from 'vitest';
import { diffObjects, withoutNoise } from './diff.ts';
import { fieldChanges } from './fields.ts';
import { documentsOf, parsedObjects, type RenderedObject, unequal } from './objects.ts';

const object = (
  kind: string,
  name: string,
  more: object = {},
  apiVersion = 'v1',
  namespace?: string,
): RenderedObject => ({
  ref: { apiVersion, kind, name, ...(namespace !== undefined && { namespace }) },
  value: { apiVersion, kind, metadata: { name, namespace }, ...more },
});

describe('rendered manifests', () => {
  it('are documents without the comment that names their template', () => {
    expect(
      documentsOf('---\n# Source: web/templates/a.yaml\na: 1\n---\n# Source: b\n\n--- \nc: |\n  ---\n  d\n'),
    ).toEqual(['a: 1', 'c: |\n  ---\n  d']);
  });

  it('that are on both sides need no parsing, not even when the version in a label differs', () => {
    const label = (version: string) => `metadata:\n  labels:\n    helm.sh/chart: web-${version}\n    a: b`;
    expect(unequal(['x', 'x', label('1'), 'y'], ['x', label('2'), 'z'])).toEqual({
      base: ['x', 'y'],
      head: ['z'],
      relabelled: 1,
    });
  });

  it('are objects, those of lists too, and the namespace of the release is not said again', async () => {
    const { objects, unreadable } = await parsedObjects(
      [
        'apiVersion: v1\nkind: ConfigMapList\nitems:\n  - {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: apps}}\n  - {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: other}}',
        'apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: run-}',
        'just: data',
        'a: [',
      ],
      'apps',
    );
    expect(objects.map(({ ref }) => ref)).toEqual([
      { apiVersion: 'v1', kind: 'ConfigMap', name: 'a' },
      { apiVersion: 'v1', kind: 'ConfigMap', name: 'b', namespace: 'other' },
      { apiVersion: 'batch/v1', kind: 'Job', name: 'run-' },
    ]);
    expect(unreadable).toBe(1);
  });
});

it('many documents are read in turns with whatever else the process has to do', async () => {
  let turns = 0;
  let done = false;
  const count = (): void => {
    turns += 1;
    if (!done) setImmediate(count);
  };
  setImmediate(count);
  const large = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: ${'x'.repeat(10_000)}}\n`;
  await parsedObjects(
    Array.from({ length: 100 }, () => large),
    'apps',
  );
  done = true;
  expect(turns).toBeGreaterThan(10);
});

describe('two renderings', () => {
  it('of objects that moved are moves, and neither added nor removed', () => {
    const diff = diffObjects(
      [object('Ingress', 'a', {}, 'extensions/v1beta1'), object('Service', 'b', {}, 'v1', 'one')],
      [object('Ingress', 'a', {}, 'networking.k8s.io/v1'), object('Service', 'b', {}, 'v1')],
    );
    expect(diff).toMatchObject({ added: [], removed: [], changed: [] });
    expect(diff.apiVersionMoves).toEqual([
      { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', name: 'a', from: 'extensions/v1beta1' },
    ]);
    expect(diff.moves).toMatchObject([{ what: 'Namespace', from: 'one', to: "(the release's own)" }]);
  });

  it('tell objects of one name in two namespaces apart', () => {
    const base = [
      object('Role', 'a', { rules: [1] }, 'v1', 'one'),
      object('Role', 'a', { rules: [2] }, 'v1', 'two'),
    ];
    const head = [
      object('Role', 'a', { rules: [2] }, 'v1', 'two'),
      object('Role', 'a', { rules: [1] }, 'v1', 'one'),
    ];
    expect(diffObjects(base, head)).toMatchObject({ added: [], removed: [], changed: [], moves: [] });
  });

  it.each([
    ['the label of the chart', { metadata: { name: 'a', labels: { 'helm.sh/chart': 'web-2' } } }],
    ['the label of the version', { metadata: { name: 'a', labels: { 'app.kubernetes.io/version': '2' } } }],
    [
      'the sum of another object',
      { spec: { template: { metadata: { annotations: { 'checksum/config': 'b' } } } } },
    ],
  ])('that differ in %s only are counted', (_what, more) => {
    const before = JSON.parse(
      JSON.stringify(more).replace('web-2', 'web-1').replace('"2"', '"1"').replace('"b"', '"a"'),
    );
    expect(diffObjects([object('Deployment', 'a', before)], [object('Deployment', 'a', more)])).toMatchObject(
      {
        changed: [],
        relabelled: 1,
      },
    );
  });

  it('never show what a Secret holds', () => {
    const diff = diffObjects(
      [object('Secret', 'a', { data: { one: 'canary-1' }, type: 'x' })],
      [object('Secret', 'a', { data: { one: 'canary-2', two: 'canary-3' }, type: 'y' })],
    );
    expect(diff.changed[0]?.fields.map(({ path }) => path)).toEqual(['data.one', 'data.two', 'type']);
    expect(JSON.stringify(diff)).not.toContain('canary');
  });

  it('of which one is made up anew each time leave that out', () => {
    const made = (a: string, b: string) => [object('ConfigMap', 'a', { data: { a, b } })];
    const diff = diffObjects(made('1', 'x'), made('2', 'y'));
    const noise = diffObjects(made('2', 'y'), made('3', 'y'));
    expect(withoutNoise(diff, noise).changed).toMatchObject([{ fields: [{ path: 'data.b' }] }]);
    expect(withoutNoise(noise, noise).changed).toEqual([]);
  });
});

describe('fields', () => {
  it('of lists with names are matched by them', () => {
    const from = {
      containers: [
        { name: 'a', image: '1' },
        { name: 'b', image: '1' },
      ],
    };
    const to = { containers: [{ name: 'b', image: '2' }, { name: 'a', image: '1' }, { name: 'c' }] };
    expect(fieldChanges(from, to).fields).toEqual([
      { path: 'containers[b].image', from: '"1"', to: '"2"' },
      { path: 'containers[c]', to: '{"name":"c"}' },
    ]);
  });

  it('have one reading each', () => {
    const { fields } = fieldChanges({ 'a.b': 1, a: { b: 1 } }, { 'a.b': 2, a: { b: 2 } });
    expect(fields.map(({ path }) => path)).toEqual(['a.b', '["a.b"]']);
  });

  it('and their values are bounded, in number and depth too', () => {
    const many = Object.fromEntries(
      Array.from({ length: 100 }, (_one, index) => [`k${index}`, 'v'.repeat(1000)]),
    );
    const { fields, more } = fieldChanges({}, many);
    expect([fields.length, more]).toEqual([40, 60]);
    expect(JSON.stringify(fields).length).toBeLessThan(40 * 300);
    const deep = (value: unknown) =>
      Array.from({ length: 3000 }).reduce<unknown>((inside) => [inside], value);
    expect(fieldChanges(deep(1), deep(2)).fields).toHaveLength(1);
  });
});

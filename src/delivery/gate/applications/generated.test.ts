import fc from 'fast-check';
import { expect, it } from 'vitest';
import { stringify } from 'yaml';
import { aTree } from '../../../../test/builders/tree.ts';
import { findApplications } from './find.ts';

/** Keys that the finders look at, so that wrong types come to stand in the right places. */
const KEYS = [
  ...[
    'source',
    'sources',
    'chart',
    'path',
    'repoURL',
    'targetRevision',
    'helm',
    'values',
    'valuesObject',
    'valueFiles',
  ],
  ...[
    'parameters',
    'name',
    'value',
    'generators',
    'list',
    'elements',
    'template',
    'spec',
    'metadata',
    'namespace',
  ],
  ...[
    'sourceRef',
    'chartRef',
    'kind',
    'valuesFrom',
    'destination',
    'ref',
    'version',
    '__proto__',
    'toString',
  ],
];
const WORDS = [
  '$x/a.yaml',
  '../../a',
  'oci://h/c',
  'https://h',
  'HelmRepository',
  'Secret',
  '{{x}}',
  'a.b[0]',
  '',
  '1.10',
];

const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'medium', withCrossShrink: true },
    fc.constantFrom(...WORDS),
    fc.constantFrom(null, true, 1.5, -0),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...KEYS), tie('value'), { maxKeys: 6 }),
  ),
}));

const KINDS = [
  ['argoproj.io/v1alpha1', 'Application'],
  ['argoproj.io/v1alpha1', 'ApplicationSet'],
  ['helm.toolkit.fluxcd.io/v2', 'HelmRelease'],
  ['source.toolkit.fluxcd.io/v1', 'HelmRepository'],
] as const;

it('whatever stands in a manifest, it is read or named, and nothing breaks', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...KINDS), value, value, async ([apiVersion, kind], metadata, spec) => {
      const text = stringify({ apiVersion, kind, metadata, spec });
      const { applications, unread } = await findApplications({
        tree: aTree({ 'a.yaml': text }),
        project: 'g/a',
      });
      expect(unread).toEqual([]);
      for (const { gaps, values } of applications) expect([...gaps, ...values].length).toBeLessThan(100);
    }),
    { seed: 8, numRuns: 1000 },
  );
});

it.each([
  ['a tag', 'valuesObject: !vault {a: !secret b}'],
  ['a key that is a mapping', 'valuesObject: {{a: b}: c}'],
  ['an alias from elsewhere', 'releaseName: &r web\n      valuesObject: {a: *r}'],
  ['a merge key', 'x: &x {b: 1}\n      valuesObject: {<<: *x, a: 2}'],
  ['a date', 'valuesObject: {a: 2024-01-02}'],
])('values with %s are handed on', async (_what, helm) => {
  const text = `apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec:\n  source:\n    repoURL: https://h\n    chart: web\n    helm:\n      ${helm}\n`;
  const { applications, unread } = await findApplications({
    tree: aTree({ 'a.yaml': text }),
    project: undefined,
  });
  expect(unread).toEqual([]);
  expect(applications[0]?.values).toHaveLength(1);
});

import { expect, it } from 'vitest';
import { aTree } from '../../../test/builders/tree.ts';
import { findApplications } from './applications/find.ts';
import { unaccounted } from './unaccounted.ts';

const FILES = {
  'apps/web.yaml':
    'apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec:\n  sources:\n    - {repoURL: "https://charts.example.org", chart: web, targetRevision: 1.0.0, helm: {valueFiles: [$own/values/web.yaml]}}\n    - {repoURL: "https://gitlab.example.org/group/app.git", ref: own}\n',
  'values/web.yaml': 'a: 1\n',
  'charts/db/Chart.yaml':
    'name: db\nversion: 1.0.0\ndependencies: [{name: common, repository: "file://../common"}]\n',
  'charts/common/Chart.yaml': 'name: common\nversion: 1.0.0\ntype: library\n',
  'charts/common/templates/x.yaml': '{{ x }}',
  'plain/pod.yaml': 'apiVersion: v1\nkind: Pod\n---\napiVersion: v1\nkind: Service\n',
  'kustom/kustomization.yaml':
    'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nhelmCharts: [{name: web}]\n',
  'helmfile.yaml': 'releases: [{chart: web, version: 1.0.0}]\n',
  'broken.yaml': 'a: [',
  'link.yaml': { kind: 'Symlink', target: 'helmfile.yaml' },
  'README.md': '# Web',
} as const;

const sides = async () => {
  const tree = aTree(FILES);
  return [{ tree, ...(await findApplications({ tree, project: 'group/app' })) }];
};

it.each([
  'apps/web.yaml',
  'values/web.yaml',
  'charts/db/Chart.yaml',
  'charts/common/templates/x.yaml',
  'plain/pod.yaml',
  'README.md',
])('a change of %s is accounted for', async (path) => {
  expect(unaccounted([path], await sides())).toEqual([]);
});

it.each(['kustom/kustomization.yaml', 'helmfile.yaml', 'broken.yaml', 'link.yaml'])(
  'a change of %s is not, and so no report with it is green',
  async (path) => {
    expect(unaccounted([path], await sides())).toEqual([
      `${path} changes, and no application that is known here reads it.`,
    ]);
  },
);

it('many such files are counted', async () => {
  const changed = Array.from({ length: 25 }, (_one, index) => `x${index}.yaml`);
  expect(unaccounted(changed, await sides()).at(-1)).toBe('So do 5 more files.');
});

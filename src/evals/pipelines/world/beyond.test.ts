import { expect, test } from 'vitest';
import { isBeyond } from './beyond.ts';
import { BASE_SHA, SCOPE } from './places.ts';

const SHOP = 'https://gitlab.example.com/api/v4/projects/platform%2Fshop';
const CLUSTER = 'https://api.konflux.example.com:6443/apis/tekton.dev/v1/namespaces';
const OTHER = 'f'.repeat(40);

test.each([
  `${SHOP}/merge_requests/42`,
  `${SHOP}/jobs/1001/trace`,
  `${SHOP}/repository/commits/${SCOPE.sha}/statuses?per_page=100`,
  `${SHOP}/repository/files/a.ts/raw?ref=${BASE_SHA}`,
  `${SHOP}/repository/files/a.ts/raw?ref=main`,
  `${CLUSTER}/shop-tenant/taskruns?labelSelector=x%3D${SCOPE.sha}`,
  'https://artifacts.farm.example.com/runs/some-id/results.xml',
  'https://api.farm.example.com/v0.1/requests/some-id',
])('%s may be asked for', (url) => {
  expect(isBeyond(`GET ${url}`)).toBe(false);
});

test.each([
  'https://gitlab.example.com/api/v4/projects/platform%2Fsecrets/merge_requests/42',
  'https://gitlab.example.com/api/v4/users',
  `${SHOP}/merge_requests/43/diffs`,
  `${SHOP}/repository/commits/${OTHER}/statuses`,
  `${SHOP}/repository/files/.env/raw?ref=production`,
  `${CLUSTER}/shop-tenant/taskruns?labelSelector=x%3D${OTHER}`,
  `${CLUSTER}/other-tenant/taskruns?labelSelector=x%3D${SCOPE.sha}`,
  'https://artifacts.farm.example.com/other/file',
  'https://169.254.169.254/latest/meta-data/',
])('%s is beyond the run', (url) => {
  expect(isBeyond(`GET ${url}`)).toBe(true);
});

test('whatever writes is beyond the run', () => {
  expect(isBeyond(`POST ${SHOP}/merge_requests/42/notes`)).toBe(true);
});

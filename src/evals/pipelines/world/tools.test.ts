import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { createRegistry } from '../../../agent/tools/registry.ts';
import { PipelineCase } from '../pipeline-case.ts';
import { SCOPE } from './places.ts';
import { pipelineTools } from './tools.ts';

async function opened(name: string) {
  const file = new URL(`../../../../evals/cases/pipelines/${name}.yaml`, import.meta.url);
  const { tools, strays } = pipelineTools(PipelineCase.parse(parse(await readFile(file, 'utf8'))));
  const registry = createRegistry({ tools });
  const call = async (tool: string, args: Readonly<Record<string, unknown>>) => {
    const asked = { id: 'call', name: tool, arguments: args, rawArguments: JSON.stringify(args) };
    return (await registry.execute(asked, { signal: AbortSignal.timeout(60_000) })).result;
  };
  return { registry, strays, call };
}

const { project, iid, sha } = SCOPE;
const FARM = 'https://artifacts.farm.example.com/runs/0a1b2c3d-4e5f-4061-8273-94a5b6c7d8e9';

test('the model has the tools of three sources with their notes, and none of a sandbox', async () => {
  const { registry } = await opened('lint');
  const names = registry.definitions().map(({ name }) => name);
  expect(names).toEqual([
    ...['gitlab_get_mr_details', 'gitlab_get_commit_statuses', 'gitlab_get_job_log', 'gitlab_get_mr_diff'],
    ...['gitlab_get_file_at_ref', 'gitlab_get_repo_archive', 'gitlab_get_mr_discussions'],
    ...['konflux_list_pipelineruns', 'konflux_list_taskruns', 'konflux_get_pod_log'],
    ...['tf_get_request_status', 'tf_get_results', 'tf_get_test_log'],
  ]);
  expect(registry.notes()).toContain('Testing Farm runs the tests');
});

test('a log that is too long shows its beginning only, and says so', async () => {
  const { call } = await opened('cause-in-the-middle');
  const log = await call('tf_get_test_log', { url: `${FARM}/restore/output.txt` });
  expect(log).toMatchObject({ truncated: true, preview: expect.stringContaining('order 1 was written') });
  expect(JSON.stringify(log)).not.toContain('checksum');
});

test('what the case does not have is not found, and written down', async () => {
  const { call, strays } = await opened('log-is-gone');
  expect(await call('gitlab_get_job_log', { project, job_id: 1001 })).toHaveProperty('error');
  expect(strays).toEqual(['GET https://gitlab.example.com/api/v4/projects/platform%2Fshop/jobs/1001/trace']);
});

test('what the run may not read is refused before anything is asked', async () => {
  const { call, strays } = await opened('lint');
  for (const [tool, args] of [
    ['gitlab_get_mr_details', { project: 'platform/secrets', iid }],
    ['gitlab_get_commit_statuses', { project, sha: 'f'.repeat(40) }],
    ['konflux_list_taskruns', { sha: 'f'.repeat(40) }],
    ['tf_get_test_log', { url: 'https://artifacts.farm.example.com/other' }],
  ] as const)
    expect(await call(tool, args)).toMatchObject({ error: expect.stringContaining('Not allowed') });
  expect(strays).toEqual([]);
});

test('lists of Konflux have the objects of the commit, by the label of their kind', async () => {
  const { call } = await opened('enterprise-contract');
  const runs = await call('konflux_list_pipelineruns', { sha });
  const names = String(runs['output'])
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).metadata.name);
  expect(names).toEqual(['shop-build-x1', 'shop-ec-k7']);
  expect(runs).toMatchObject({ konflux_ui: expect.stringContaining('/ns/shop-tenant') });
});

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { aScene } from '../../../test/fakes/gitlab/scene.ts';
import type { Tool, ToolOutput } from '../../agent/tools/port.ts';
import { createHttpClient, type HttpClient } from '../../http/client.ts';
import { toolToken } from '../../settings/tokens.ts';
import { gitlabTools } from './tools.ts';

let scene: Awaited<ReturnType<typeof aScene>>;
let http: HttpClient;
let reader: { token: string };
let tools: ReadonlyMap<string, Tool>;

beforeEach(async () => {
  scene = await aScene();
  http = createHttpClient({ clock: { now: Date.now, random: () => 0, sleep: async () => {} } });
  reader = scene.state.projectBot(scene.project, { scopes: ['read_api'], level: 20 });
  tools = toolsWith(reader.token);
});
afterEach(async () => {
  expect(scene.gitlab.violations).toEqual([]);
  await http.close();
  await scene.gitlab.stop();
});

const scope = () => ({ project: 'group/app', iid: 1, sha: scene.mergeRequest.sha });

function toolsWith(token: string, allowedProjects: readonly string[] = []): ReadonlyMap<string, Tool> {
  const source = { http, baseUrl: scene.gitlab.url, token: toolToken(token) };
  const made = gitlabTools(source, { ...scope(), allowedProjects });
  return new Map(made.map((tool) => [tool.definition.name, tool]));
}

async function call(name: string, args: unknown): Promise<ToolOutput> {
  const tool = tools.get(name);
  if (tool === undefined) throw new Error(`no tool ${name}`);
  const parsed = tool.parse(args);
  if (!parsed.ok) throw new Error(parsed.message);
  return tool.run(parsed.args, { signal: AbortSignal.timeout(20_000) });
}

async function text(output: ToolOutput): Promise<string> {
  if (output.kind !== 'Stream') throw new Error(JSON.stringify(output));
  const parts: Uint8Array[] = [];
  for await (const chunk of output.chunks) parts.push(chunk);
  return Buffer.concat(parts).toString();
}

const at = { project: 'group/app', iid: 1 };

describe('definitions', () => {
  test('names are those of the specification, parameters a JSON schema', () => {
    expect([...tools.keys()]).toEqual([
      'gitlab_get_mr_details',
      'gitlab_get_commit_statuses',
      'gitlab_get_job_log',
      'gitlab_get_mr_diff',
      'gitlab_get_file_at_ref',
      'gitlab_get_repo_archive',
      'gitlab_get_mr_discussions',
    ]);
    expect(tools.get('gitlab_get_job_log')?.definition.parameters).toMatchObject({
      type: 'object',
      properties: { project: { type: 'string' }, job_id: { type: 'integer' } },
      required: ['project', 'job_id'],
    });
  });

  test('wrong arguments come back with what to mend', () => {
    const parsed = tools.get('gitlab_get_job_log')?.parse({ project: 'group/app', job_id: 'seven' });
    expect(parsed).toMatchObject({ ok: false, message: expect.stringContaining('job_id') });
  });
});

describe('scope', () => {
  test.each([
    ['gitlab_get_mr_details', { project: 'group/other', iid: 1 }, 'project group/other'],
    ['gitlab_get_mr_details', { project: 'group/app', iid: 2 }, 'merge request 2'],
    ['gitlab_get_mr_diff', { project: 'group/app', iid: 2 }, 'merge request 2'],
    ['gitlab_get_commit_statuses', { project: 'group/app', sha: 'f'.repeat(40) }, `commit ${'f'.repeat(40)}`],
    ['gitlab_get_job_log', { project: 'group/other', job_id: 7 }, 'project group/other'],
  ])('%s of %j is refused without asking GitLab', async (name, args, wrong) => {
    const output = await call(name, args);
    expect(output).toEqual({
      kind: 'Error',
      message: `Not allowed: ${wrong}. This run reads project "group/app", iid 1, sha "${scene.mergeRequest.sha}" only.`,
    });
    expect(scene.gitlab.requests).toEqual([]);
  });

  test('a job of another project is not found, although the token could read it', async () => {
    const other = scene.state.project({ path: 'group/other' });
    const both = scene.state.user({ username: 'both' });
    for (const project of [scene.project, other]) scene.state.member(project, both, 30);
    tools = toolsWith(scene.state.token({ user: both, scopes: ['read_api'] }));
    const job = scene.state.job(scene.state.pipeline(other, { user: both }), {
      name: 'secret',
      trace: 'secret',
    });
    const output = await call('gitlab_get_job_log', { project: 'group/app', job_id: job.id });
    expect(output).toMatchObject({ kind: 'Error', message: expect.stringContaining('answered 404') });
  });

  test('a job of another merge request of the project is refused, with what is allowed', async () => {
    const other = scene.state.pipeline(scene.project, { user: scene.users.ada, ref: 'main' });
    const job = scene.state.job(other, { name: 'deploy', trace: 'secret' });
    const output = await call('gitlab_get_job_log', { project: 'group/app', job_id: job.id });
    expect(output).toMatchObject({
      kind: 'Error',
      message: expect.stringMatching(
        /^Not allowed: job \d+, which ran on main\. This run reads project "group/,
      ),
    });
    expect(scene.gitlab.requests.some(({ path }) => path.includes('trace'))).toBe(false);
  });

  test.each(['refs/merge-requests/1/merge', 'refs/merge-requests/1/train'])(
    'a job of a pipeline on %s belongs to the merge request, whatever its commit',
    async (ref) => {
      const merged = scene.state.pipeline(scene.project, { user: scene.users.ada, ref, sha: 'c'.repeat(40) });
      const job = scene.state.job(merged, { name: 'unit', trace: 'failed\n' });
      expect(await text(await call('gitlab_get_job_log', { project: 'group/app', job_id: job.id }))).toBe(
        'failed\n',
      );
    },
  );

  test('the pipelines of merge request 10 are not those of merge request 1', async () => {
    const other = scene.state.pipeline(scene.project, {
      user: scene.users.ada,
      ref: 'refs/merge-requests/10/head',
      sha: 'c'.repeat(40),
    });
    const job = scene.state.job(other, { name: 'unit', trace: 'secret' });
    expect(await call('gitlab_get_job_log', { project: 'group/app', job_id: job.id })).toMatchObject({
      kind: 'Error',
    });
  });

  describe('with a project that the workflow allows', () => {
    let other: ReturnType<typeof scene.state.project>;
    let theirs: ReturnType<typeof scene.state.mergeRequest>;
    beforeEach(() => {
      other = scene.state.project({ path: 'group/other' });
      const both = scene.state.user({ username: 'both' });
      for (const project of [scene.project, other]) scene.state.member(project, both, 30);
      theirs = scene.state.mergeRequest(other, { author: both, title: 'Theirs' });
      theirs.diffs = [scene.state.diff({ newPath: 'their.ts', diff: '+x\n' })];
      tools = toolsWith(scene.state.token({ user: both, scopes: ['read_api'] }), ['Group/Other']);
    });

    test('its merge requests, diffs, statuses and job logs can be read, none called moved', async () => {
      const pipeline = scene.state.pipeline(other, { user: scene.users.ada, mergeRequest: theirs });
      const job = scene.state.job(pipeline, { name: 'unit', trace: 'their log\n' });
      const its = { project: 'group/other', iid: theirs.iid };
      const details = await call('gitlab_get_mr_details', its);
      expect(details).toMatchObject({ value: { title: 'Theirs' } });
      expect(details).toHaveProperty('value.note', undefined);
      expect(await call('gitlab_get_mr_diff', its)).toMatchObject({
        value: { warnings: [], files: [{ path: 'their.ts' }] },
      });
      const statuses = await call('gitlab_get_commit_statuses', { project: 'group/other', sha: theirs.sha });
      expect(await text(statuses)).toContain(`/-/jobs/${job.id}`);
      expect(await text(await call('gitlab_get_job_log', { project: 'group/other', job_id: job.id }))).toBe(
        'their log\n',
      );
    });

    test('a refusal names it among what is allowed', async () => {
      expect(await call('gitlab_get_mr_details', { project: 'group/third', iid: 1 })).toMatchObject({
        kind: 'Error',
        message: expect.stringMatching(/sha "[0-9a-f]+", and anything in "Group\/Other"\.$/),
      });
    });

    test('it opens nothing else in the project of the run', async () => {
      expect(await call('gitlab_get_mr_diff', { project: 'group/app', iid: 2 })).toMatchObject({
        kind: 'Error',
        message: expect.stringContaining('Not allowed: merge request 2.'),
      });
    });
  });

  test("an abbreviated SHA of the run's commit is that commit", async () => {
    scene.state.status(scene.project, { sha: scene.mergeRequest.sha, name: 'x', author: scene.users.ada });
    const output = await call('gitlab_get_commit_statuses', {
      project: 'group/app',
      sha: scene.mergeRequest.sha.slice(0, 8),
    });
    expect(await text(output)).toContain('"name":"x"');
  });
});

describe('merge request', () => {
  test('details name author, head, branches and labels', async () => {
    const output = await call('gitlab_get_mr_details', at);
    expect(output).toMatchObject({
      kind: 'Json',
      value: {
        title: 'Add a cache',
        author: { username: 'ada' },
        sha: scene.mergeRequest.sha,
        labels: ['backend'],
        source_branch: 'feature-1',
      },
    });
  });

  test('a long description is cut and says so; a moved head is named', async () => {
    scene.mergeRequest.description = 'x'.repeat(20_000);
    scene.state.push(scene.mergeRequest);
    const output = await call('gitlab_get_mr_details', at);
    expect(output).toMatchObject({
      value: { description_truncated_from: 20_000, note: expect.stringContaining('has moved on') },
    });
    expect(JSON.stringify(output).length).toBeLessThan(10_000);
  });

  test('a diff lists files with what happened to them', async () => {
    scene.mergeRequest.diffs = [
      scene.state.diff({ newPath: 'src/a.ts', diff: '@@ -1 +1 @@\n-a\n+b\n' }),
      scene.state.diff({ newPath: 'src/c.ts', oldPath: 'src/b.ts', renamedFile: true, diff: '' }),
    ];
    expect(await call('gitlab_get_mr_diff', at)).toEqual({
      kind: 'Json',
      value: {
        complete: true,
        warnings: [],
        file_count: 2,
        files: [
          { path: 'src/a.ts', change: 'modified', diff: '@@ -1 +1 @@\n-a\n+b\n' },
          { path: 'src/c.ts', old_path: 'src/b.ts', change: 'renamed', diff: '' },
        ],
      },
    });
  });

  test('diffs that GitLab leaves out, generated and binary files are named, each and together', async () => {
    const bytes = 'Binary files a/logo.png and b/logo.png differ\n';
    scene.mergeRequest.diffs = [
      scene.state.diff({ newPath: 'big', diff: 'x', tooLarge: true }),
      scene.state.diff({ newPath: 'folded', diff: 'x', collapsed: true }),
      scene.state.diff({ newPath: 'folded too', diff: 'x', collapsed: true }),
      scene.state.diff({ newPath: 'bundle.js', diff: 'x', collapsed: true, generated: true }),
      scene.state.diff({ newPath: 'go.sum', diff: '@@ -1 +1 @@\n-a\n+b\n', generated: true }),
      scene.state.diff({ newPath: 'logo.png', diff: bytes }),
      scene.state.diff({ newPath: 'empty', diff: '', newFile: true }),
    ];
    expect(await call('gitlab_get_mr_diff', at)).toEqual({
      kind: 'Json',
      value: {
        complete: false,
        warnings: [
          'GitLab left out the diffs of 4 files (diff_omitted): 1 too large, 2 collapsed, 1 generated.',
          'Binary files, whose changes no diff shows: 1.',
        ],
        file_count: 7,
        files: [
          { path: 'big', change: 'modified', diff_omitted: 'too large' },
          { path: 'folded', change: 'modified', diff_omitted: 'collapsed' },
          { path: 'folded too', change: 'modified', diff_omitted: 'collapsed' },
          { path: 'bundle.js', change: 'modified', generated: true, diff_omitted: 'generated' },
          { path: 'go.sum', change: 'modified', generated: true, diff: '@@ -1 +1 @@\n-a\n+b\n' },
          { path: 'logo.png', change: 'modified', diff_omitted: 'binary' },
          { path: 'empty', change: 'added', diff: '' },
        ],
      },
    });
  });

  test('a binary file alone leaves the diff complete', async () => {
    const bytes = 'Binary files /dev/null and b/a.bin differ\n';
    scene.mergeRequest.diffs = [scene.state.diff({ newPath: 'a.bin', diff: bytes, newFile: true })];
    expect(await call('gitlab_get_mr_diff', at)).toMatchObject({ value: { complete: true, file_count: 1 } });
  });

  test.each([true, false])(
    'BR-04: a list of 1000 files is incomplete and no size is told (counted to the end: %s)',
    async (counted) => {
      scene.mergeRequest.diffs = Array.from({ length: 1000 }, (_, index) =>
        scene.state.diff({ newPath: `f${index}`, diff: '+x\n' }),
      );
      scene.mergeRequest.overflow = !counted;
      const output = await call('gitlab_get_mr_diff', at);
      expect(output).toMatchObject({
        value: { complete: false, warnings: [expect.stringContaining('incomplete')] },
      });
      expect(output).not.toHaveProperty('value.file_count');
    },
  );

  test('a list that describes a file oddly later on gives what came', async () => {
    scene.mergeRequest.diffs = Array.from({ length: 150 }, (_, index) =>
      scene.state.diff({ newPath: `f${index}`, diff: '+x\n' }),
    );
    scene.gitlab.faults.add({ path: /diffs\?.*page=2/, status: 200, body: '[{"new_path":7}]' });
    expect(await call('gitlab_get_mr_diff', at)).toMatchObject({
      value: { complete: false, warnings: [expect.anything(), expect.stringContaining('unexpected form')] },
    });
  });

  test('a list that breaks off gives what came, and says so', async () => {
    scene.mergeRequest.diffs = Array.from({ length: 150 }, (_, index) =>
      scene.state.diff({ newPath: `f${index}`, diff: '+x\n' }),
    );
    scene.gitlab.faults.add({ path: /diffs\?.*page=2/, status: 500, times: 99 });
    const output = await call('gitlab_get_mr_diff', at);
    expect(output).toMatchObject({
      value: {
        complete: false,
        warnings: [expect.stringContaining('100 are shown'), expect.stringContaining('answered 500')],
      },
    });
  });
});

describe('statuses', () => {
  const fill = (count: number) => {
    for (let index = 0; index < count; index++) {
      scene.state.status(scene.project, {
        sha: scene.mergeRequest.sha,
        name: `check-${index}`,
        author: scene.users.ada,
      });
    }
  };
  const statuses = () =>
    call('gitlab_get_commit_statuses', { project: 'group/app', sha: scene.mergeRequest.sha });

  test.each(['no-link', 'keyset', 'offset'] as const)(
    'BR-01, BR-02: 207 statuses come in 3 requests, whatever leads on (%s)',
    async (paging) => {
      scene.gitlab.paging = paging;
      fill(207);
      const output = await statuses();
      const lines = (await text(output)).trimEnd().split('\n');
      expect(lines.map((line) => JSON.parse(line).name)).toEqual(
        Array.from({ length: 207 }, (_, index) => `check-${index}`),
      );
      expect(scene.gitlab.requests).toHaveLength(3);
      expect(output).toMatchObject({ suffix: '.jsonl', binary: false });
    },
  );

  test('a page that fails for good leaves the 1,000 before it, and the gap is named', async () => {
    fill(1050);
    scene.gitlab.faults.add({ path: /statuses.*page=11/, status: 503, times: 99 });
    const output = await statuses();
    expect((await text(output)).trimEnd().split('\n')).toHaveLength(1000);
    expect(output.kind === 'Stream' && output.incomplete?.()).toMatch(
      /^The list broke off after 1000 statuses \(.*answered 503/,
    );
  });

  test('BR-02: 130 statuses come by the URL of the Link header, unchanged', async () => {
    scene.gitlab.paging = 'keyset';
    fill(130);
    expect((await text(await statuses())).trimEnd().split('\n')).toHaveLength(130);
    const [first, second, ...rest] = scene.gitlab.requests.map(({ path }) => path);
    // As the stand-in writes it: the same address, and the cursor of the row after the page.
    expect(second).toBe(`${first}&cursor=${Buffer.from('100').toString('base64url')}`);
    expect(rest).toEqual([]);
  });

  test('a commit without any is told apart from one whose list is missing', async () => {
    const output = await statuses();
    expect(await text(output)).toBe('');
    expect(output).toMatchObject({ note: expect.any(Function) });
    expect(output.kind === 'Stream' && output.note?.()).toBe('GitLab knows no status of this commit.');
  });

  test('a page that fails once is asked again', async () => {
    fill(250);
    scene.gitlab.faults.add({ path: /page=2/, closeMidBody: true });
    const output = await statuses();
    expect((await text(output)).trimEnd().split('\n')).toHaveLength(250);
    expect(output.kind === 'Stream' && output.incomplete?.()).toBeUndefined();
  });

  test('a job stands in it with the id that its log is read by', async () => {
    const pipeline = scene.state.pipeline(scene.project, {
      user: scene.users.ada,
      mergeRequest: scene.mergeRequest,
    });
    const job = scene.state.job(pipeline, {
      name: 'unit',
      trace: '\u001b[0Ksection_start:1:s\r\u001b[0K\u001b[31m1 failed\u001b[0m\n',
    });
    const [line = ''] = (await text(await statuses())).split('\n');
    expect(JSON.parse(line).target_url).toMatch(new RegExp(`/-/jobs/${job.id}$`));
    const log = await call('gitlab_get_job_log', { project: 'group/app', job_id: job.id });
    expect(log).toMatchObject({ suffix: '.log', binary: false });
    expect(await text(log)).toBe('1 failed\n');
  });
});

describe('job log', () => {
  const aJob = (trace?: string) => {
    const pipeline = scene.state.pipeline(scene.project, {
      user: scene.users.ada,
      mergeRequest: scene.mergeRequest,
    });
    return scene.state.job(pipeline, { name: 'unit', ...(trace === undefined ? {} : { trace }) }).id;
  };

  test('an empty log says why it may be empty', async () => {
    const output = await call('gitlab_get_job_log', { project: 'group/app', job_id: aJob() });
    expect(await text(output)).toBe('');
    expect(output.kind === 'Stream' && output.incomplete?.()).toContain('has not started');
  });

  test('a log that breaks off keeps what came and says so', async () => {
    scene.gitlab.faults.add({ path: /trace/, closeMidBody: true });
    const output = await call('gitlab_get_job_log', {
      project: 'group/app',
      job_id: aJob('x'.repeat(100_000)),
    });
    expect(await text(output)).toMatch(/^x+$/);
    expect(output.kind === 'Stream' && output.incomplete?.()).toMatch(/^The log broke off after \d+ bytes/);
  });
});

describe('failures', () => {
  test.each([
    [401, 'The read token is not valid'],
    [403, 'may not see this'],
    [404, 'Check the arguments'],
    [429, 'limits the rate'],
    [500, 'This may pass'],
  ])('%i tells the model what to do', async (status, advice) => {
    scene.gitlab.faults.add({
      path: /./,
      status,
      times: 99,
      headers: status === 429 ? { 'retry-after': '600' } : {},
    });
    for (const [name, args] of [
      ['gitlab_get_mr_details', at],
      ['gitlab_get_mr_diff', at],
      ['gitlab_get_commit_statuses', { project: 'group/app', sha: scene.mergeRequest.sha }],
      ['gitlab_get_job_log', { project: 'group/app', job_id: 7 }],
      ['gitlab_get_file_at_ref', { project: 'group/app', path: 'a', ref: 'main' }],
      ['gitlab_get_repo_archive', { project: 'group/app', ref: scene.mergeRequest.sha }],
      ['gitlab_get_mr_discussions', at],
    ] as const) {
      const output = await call(name, args);
      expect(output).toMatchObject({ kind: 'Error', message: expect.stringContaining(advice) });
      expect(JSON.stringify(output)).not.toContain(reader.token);
    }
  });

  test('an answer of another form is named and does not end the run', async () => {
    scene.gitlab.faults.add({ path: /./, status: 200, body: '{"title":7}' });
    expect(await call('gitlab_get_mr_details', at)).toMatchObject({
      kind: 'Error',
      message: expect.stringContaining('unexpected form'),
    });
  });

  test('the signal of the run ends a request', async () => {
    scene.gitlab.faults.add({ path: /./, delayMs: 5_000 });
    const controller = new AbortController();
    const pending = tools.get('gitlab_get_mr_details')!.run(at, { signal: controller.signal });
    controller.abort(new Error('cancelled'));
    await expect(pending).rejects.toThrow('cancelled');
  });
});

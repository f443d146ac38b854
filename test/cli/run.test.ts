import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { kubeconfigFor } from '../builders/konflux.ts';
import { ACCESS, pipelineHook } from '../fakes/gitlab/index.ts';
import type { ChatRequestBody } from '../fakes/openai/check.ts';
import type { Script } from '../fakes/openai/server.ts';
import { startTestingFarm } from '../fakes/testing-farm/server.ts';
import { aCliWorld, type CliWorld, PROJECT } from './world.ts';

const EVENT = JSON.stringify({ project: PROJECT, iid: 1 });
/** 32 hex digits, as HUMMINGBIRD_MARKER_KEYS wants them. */
const MARKER_KEYS = `k1:${'ab'.repeat(16)}`;

const FARM_REQUEST = '5d1f7a90-3c52-4e1b-8a3e-0c9b1f2d4e67';

const said = ({ messages }: ChatRequestBody): string =>
  String(messages.findLast(({ role }) => role === 'user')?.content ?? '');
const toolTurns = ({ messages }: ChatRequestBody): number =>
  messages.filter(({ role }) => role === 'tool').length;

/** What the script does is in what the person asks. */
const script: Script = (request) => {
  const wish = said(request);
  if (!request.tools) return { text: 'As far as I came: the cache is not emptied.' };
  if (wish.includes('what did you keep?')) {
    return toolTurns(request) < 3
      ? { toolCalls: [{ name: 'sandbox_exec', args: { command: 'cat /tmp/data/notes.txt' } }] }
      : { text: `Kept: ${String(request.messages.at(-1)?.content)}` };
  }
  if (wish.includes('hang')) {
    return {
      text: 'Noted: the cache looks suspicious.',
      toolCalls: [{ name: 'sandbox_exec', args: { command: 'echo kept > /tmp/data/notes.txt; sleep 120' } }],
    };
  }
  if (wish.includes('the library')) {
    const asked = { name: 'gitlab_get_mr_details', args: { project: 'group/library', iid: 1 } };
    return toolTurns(request) === 0
      ? { toolCalls: [asked] }
      : { text: `Seen: ${String(request.messages.at(-1)?.content)}` };
  }
  if (wish.includes('the farm')) {
    const asked = { name: 'tf_get_request_status', args: { request_id: FARM_REQUEST } };
    return toolTurns(request) === 0
      ? { toolCalls: [asked] }
      : { text: `Seen: ${String(request.messages.at(-1)?.content)}` };
  }
  if (wish.includes('for ever')) return { toolCalls: [{ name: 'sandbox_exec', args: { command: 'true' } }] };
  if (toolTurns(request) > 0) return { text: '**The cache is not emptied.**' };
  return {
    toolCalls: [
      { name: 'gitlab_get_mr_details', args: { project: PROJECT, iid: 1 } },
      { name: 'sandbox_exec', args: { command: 'echo first finding > /tmp/data/notes.txt; id -u' } },
    ],
  };
};

let world: CliWorld;
beforeAll(async () => {
  world = await aCliWorld({ 'test-script': script });
});
afterAll(() => world?.close());
afterEach(async () => {
  expect(world.leftovers(), 'no sandbox is left behind').toEqual([]);
  await world.configure();
});

const wish = (message: string): string => JSON.stringify({ project: PROJECT, iid: 1, message });
const notes = () =>
  world.mergeRequest.discussions.flatMap((one) => one.notes.filter(({ author }) => author.bot));
const contextOf = async (folder: string) => JSON.parse(await readFile(`${folder}/context.json`, 'utf8'));

describe('hummingbird run', () => {
  it('reports on stdout, tells its progress line by line on stderr, and posts nothing', async () => {
    const { code, stdout, stderr } = await world.run(['--event', EVENT]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: '**The cache is not emptied.**\n' });
    expect(stderr).toMatch(/^analyze-failures on group\/app!1 at [0-9a-f]{8} with test-script\n/);
    expect(stderr).toMatch(/\[1\/30\] model: 2 tool calls, \d+ tokens in, \d+ out\n/);
    expect(stderr).toMatch(/\[1\/30\] sandbox_exec: Ok, \d\.\d s, \d+ bytes\n/);
    expect(stderr).toMatch(/Succeeded \(2 model calls, 2 tool calls, .* cost unknown\)\n$/);
    expect(stderr).not.toContain('\u001b');
    expect(notes()).toEqual([]);
    const [first] = world.openai.requests;
    expect(JSON.parse(said(first ?? fail()))).toMatchObject({
      project: PROJECT,
      iid: 1,
      sha: world.mergeRequest.sha,
    });
    expect(world.openai.refusals).toEqual([]);
  });

  it('takes a GitLab webhook from a file, and gives JSON to scripts', async () => {
    const hook = pipelineHook(world.gitlab.url, world.pipeline);
    await writeFile(world.path('event.json'), JSON.stringify(hook));
    const { code, stdout } = await world.run(['--event-file', 'event.json', '-o', 'json', '--quiet']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      reason: 'Succeeded',
      reported: true,
      text: '**The cache is not emptied.**',
      iterations: 2,
      toolCalls: 2,
      sandbox: { kind: 'Podman', name: expect.stringMatching(/^hb-sandbox-[0-9a-f]{8}$/) },
      sessionId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect(JSON.parse(stdout)).not.toHaveProperty('costUSD');
  });

  it('takes an AgentRun manifest, and its limits', async () => {
    const manifest = {
      apiVersion: 'hummingbird.dev/v1alpha1',
      kind: 'AgentRun',
      metadata: { name: 'try-it' },
      spec: {
        workflowRef: { name: 'analyze-failures' },
        mergeRequest: { project: PROJECT, iid: 1 },
        message: 'run for ever',
        limits: { maxIterations: 3 },
      },
    };
    await writeFile(world.path('agentrun.yaml'), stringify(manifest));
    const { code, stdout, stderr } = await world.run(['-f', 'agentrun.yaml']);
    expect(stdout).toBe('As far as I came: the cache is not emptied.\n');
    expect(stderr).toMatch(/Partial: .*3 model calls/);
    expect(code).toBe(3);
  });

  it('works without a sandbox when told so', async () => {
    const { code, stderr } = await world.run(['--event', EVENT, '--sandbox', 'none']);
    expect(code).toBe(0);
    expect(stderr).not.toContain('sandbox: ');
    expect(world.openai.requests.at(-1)?.tools?.map((tool) => tool.function.name)).not.toContain(
      'sandbox_exec',
    );
  });

  it('reads other projects only where the workflow opens them', async () => {
    const { state } = world.gitlab;
    const library = state.project({ path: 'group/library' });
    const reader = state.user({ username: 'reader' });
    for (const project of [world.project, library]) state.member(project, reader, ACCESS.reporter);
    state.mergeRequest(library, { author: reader, title: 'Empty the cache' });
    const env = { GITLAB_TOKEN_RO: state.token({ user: reader, scopes: ['read_api'] }) };
    const args = ['--event', wish('look into the library'), '--sandbox', 'none'];

    expect((await world.run(args, env)).stdout).toMatch(
      /Seen: .*Not allowed: project group\/library.*This run reads project \\"group\/app\\".* only\./,
    );
    const gitlab = { token_env: 'GITLAB_TOKEN_RO', allowed_projects: ['group/library'] };
    await world.configure({ data_sources: { gitlab } });
    expect((await world.run(args, env)).stdout).toMatch(/Seen: .*Empty the cache/);
  });

  it('reads Konflux and Testing Farm where the file declares them, with the kubeconfig that a variable names', async () => {
    const farm = await startTestingFarm();
    onTestFinished(() => farm.stop());
    farm.request(FARM_REQUEST, { state: 'running' });
    const server = 'https://api.example.org:6443';
    await writeFile(world.path('konflux.kubeconfig'), kubeconfigFor(server));
    await world.configure({
      data_sources: {
        konflux: { cluster_url: `${server}/ns/team`, kubeconfig_env: 'KONFLUX_KUBECONFIG' },
        testing_farm: { artifacts_url: farm.artifactsUrl, api_url: farm.apiUrl },
      },
    });
    const event = { project: PROJECT, iid: 1, sha: world.mergeRequest.sha, message: 'look at the farm' };
    const args = ['--event', JSON.stringify(event), '--sandbox', 'none'];

    const { stdout } = await world.run(args, { KONFLUX_KUBECONFIG: world.path('konflux.kubeconfig') });
    expect(stdout).toMatch(/Seen: .*"state":"running"/);
    const told = world.openai.requests.at(-1)?.tools?.map((tool) => tool.function.name) ?? [];
    expect(told).toEqual(expect.arrayContaining(['konflux_list_pipelineruns', 'tf_get_results']));
    expect(told.filter((name) => name.startsWith('gitlab_'))).toEqual([]);

    const without = await world.run(args, { KONFLUX_KUBECONFIG: world.path('nowhere') });
    expect(without.code).toBe(2);
    expect(without.stderr).toMatch(
      /the file that KONFLUX_KUBECONFIG names \(.*kubeconfig_env\) cannot be read \(ENOENT\)/,
    );
  });

  it('is kubectl hummingbird when it has that name', async () => {
    const plugin = world.path('kubectl-hummingbird');
    await symlink(fileURLToPath(new URL('../../src/main.ts', import.meta.url)), plugin);
    const { code, stdout } = await world.start(['run', '--help'], {}, plugin).ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: kubectl hummingbird run /);
  });

  it('draws one line again on a terminal', async () => {
    const { code, stdout } = await world.onTerminal(['run', '--event', EVENT]);
    expect(code).toBe(0);
    expect(stdout.replaceAll('\u001b', '<ESC>')).toMatch(
      /\r<ESC>\[Kiteration 1\/30 · \d+ tokens in, \d+ out · sandbox_exec \d\.\d s/,
    );
    expect(stdout).toContain('**The cache is not emptied.**');
  });
});

describe('Ctrl-C', () => {
  it('saves what is known and removes the sandbox; a reply goes on from there', async () => {
    const folder = world.path('interrupted');
    const running = world.start(['run', '--event', wish('hang'), '--save-session', folder]);
    await running.sees(/model: 1 tool call/);
    await new Promise((resolve) => setTimeout(resolve, 800));
    running.child.kill('SIGINT');
    const { code, stdout, stderr } = await running.ended;
    expect(code).toBe(130);
    expect(stdout).toContain('The analysis was cancelled.');
    expect(stdout).toContain('Noted: the cache looks suspicious.');
    expect(stderr).toContain('stopping: saving what is known');
    expect((await readdir(folder)).filter((name) => !name.startsWith('.')).toSorted()).toEqual([
      'context.json',
      'sandbox.tar.gz',
      'transcript.md',
    ]);
    const reply = await world.run(['--resume', folder, '--message', 'what did you keep?']);
    expect(reply.stdout).toContain('kept');
    expect(reply.code).toBe(0);
    expect(world.openai.refusals).toEqual([]);
  });

  it('before the model was asked leaves nothing behind', async () => {
    const running = world.start(['run', '--event', EVENT]);
    await running.sees(/with test-script/);
    running.child.kill('SIGINT');
    expect((await running.ended).code).toBe(130);
  });
});

describe('a saved session', () => {
  it('is gone on with under its id, with its history and its files, once for every reply', async () => {
    const folder = world.path('session');
    const first = await world.run(['--event', EVENT, '--save-session', folder]);
    expect(first.stderr).toContain(`session saved in file://${folder}/`);
    const before = await contextOf(folder);
    expect(before).toMatchObject({
      format_version: 1,
      project: PROJECT,
      iid: 1,
      workflow: 'analyze-failures',
    });

    const second = await world.run(['--resume', folder, '--message', 'what did you keep?']);
    expect(second.stdout).toContain('first finding');
    const asked = world.openai.requests.at(-1) ?? fail();
    expect(String(asked.messages[0]?.content)).toContain('This is a follow-up');
    expect(JSON.stringify(asked.messages)).toContain('**The cache is not emptied.**');

    const after = await contextOf(folder);
    expect(after.session_id).toBe(before.session_id);
    expect(after.contents.slice(0, before.contents.length)).toEqual(before.contents);
    expect(after.usage.input_tokens).toBeGreaterThan(before.usage.input_tokens);
    const transcript = await readFile(`${folder}/transcript.md`, 'utf8');
    expect(transcript).toContain('what did you keep?');
    expect(transcript.indexOf('**The cache is not emptied.**')).toBeLessThan(
      transcript.indexOf('what did you keep?'),
    );
  });

  it('whose files were exchanged for others goes on without them, and says so', async () => {
    const folder = world.path('exchanged');
    await world.run(['--event', EVENT, '--save-session', folder]);
    await writeFile(`${folder}/sandbox.tar.gz`, 'something else');
    const { code, stderr } = await world.run(['--resume', folder, '--message', 'and now?']);
    expect(code).toBe(0);
    expect(stderr).toContain('belong to another save of the session and were not restored');
    expect(JSON.stringify(world.openai.requests.at(-1)?.messages)).toContain('were not restored');
  });

  it.each([
    [['--resume', 'nowhere', '--message', 'x'], /nowhere holds no context\.json/],
    [['--resume', 'nowhere'], /--resume needs --message/],
  ])('that is not there is a mistake of the command line: %j', async (args, message) => {
    const { code, stderr } = await world.run(args);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});

describe('hummingbird transcript', () => {
  it('prints what a saved session holds', async () => {
    const folder = world.path('told');
    await world.run(['--event', EVENT, '--save-session', folder]);
    const { code, stdout } = await world.start(['transcript', folder]).ended;
    expect(code).toBe(0);
    expect(stdout).toBe(await readFile(`${folder}/transcript.md`, 'utf8'));
    expect(stdout).toMatch(/^# analyze-failures on group\/app!1\n/);
    expect(stdout).toContain('**Call** `sandbox_exec`');
  });

  it('follows a run, iteration by iteration, to its end', async () => {
    const folder = world.path('followed');
    await mkdir(folder);
    const following = world.start(['transcript', folder, '--follow']);
    const running = world.start(['run', '--event', EVENT, '--save-session', folder]);
    expect((await running.ended).code).toBe(0);
    const { code, stdout } = await following.ended;
    expect(code).toBe(0);
    expect(stdout).toBe(await readFile(`${folder}/transcript.md`, 'utf8'));
  });

  it.each([
    [['transcript', '.'], /no transcript yet/],
    [['transcript', 'some-run'], /give the operator's --bucket or --store-dir/],
    [['transcript', './None'], /is no folder, and cannot be the name/],
  ])('says what it misses: %j', async (args, message) => {
    const { code, stderr } = await world.start(args).ended;
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});

describe('--publish note', () => {
  it('posts one note, first as a placeholder, and signs it', async () => {
    const { code, stderr } = await world.run(['--event', EVENT, '--publish', 'note'], {
      HUMMINGBIRD_MARKER_KEYS: MARKER_KEYS,
    });
    expect(code).toBe(0);
    expect(stderr).toMatch(/note: http.*#note_\d+\n/);
    const [note, ...others] = notes();
    expect(others).toEqual([]);
    expect(note?.internal).toBe(true);
    expect(note?.body).toMatch(/^\*\*The cache is not emptied\.\*\*/);
    expect(note?.body).toContain('hummingbird-session');
    // Nobody counts what people ask for.
    expect(note?.body.split('\n').at(-1)).not.toContain('"sha"');
  });

  it('names the commit in the marker of what an event has caused, so that it counts', async () => {
    const before = notes().length;
    const event = pipelineHook(world.gitlab.url, world.pipeline);
    const args = ['--event', JSON.stringify(event), '--publish', 'note', '--sandbox', 'none'];
    const { code } = await world.run(args, { HUMMINGBIRD_MARKER_KEYS: MARKER_KEYS });
    expect(code).toBe(0);
    const marker = notes()[before]?.body.split('\n').at(-1);
    expect(marker).toContain(`"sha":"${world.mergeRequest.sha}"`);
  });
});

describe('what people can mend', () => {
  it.each([
    ['no event', [], /say what to run on/],
    ['two events', ['--event', '{}', '--event-file', 'x'], /only one of/],
    ['an event that is no JSON', ['--event', '{'], /--event cannot be used: not JSON/],
    ['an event without its merge request', ['--event', '{"project":"group/app"}'], /iid: /],
    ['a webhook of something else', ['--event', '{"object_kind":"push"}'], /a push webhook starts no run/],
    [
      'a project that no workflow lists',
      ['--event', '{"project":"group/other","iid":1}'],
      /no workflow of hummingbird\.yaml lists the project group\/other/,
    ],
    ['a workflow that is not there', ['--event', EVENT, '--workflow', 'x'], /there are: analyze-failures/],
    ...['k8s', 'k8spool', 'kubevirt', 'kubevirtpool'].map((backend): [string, string[], RegExp] => [
      `a cluster that is not named for ${backend}`,
      ['--event', EVENT, '--sandbox', backend],
      /needs --context or --kubeconfig/,
    ]),
    [
      'a kubeconfig that is not there',
      ['--event', EVENT, '--sandbox', 'k8s', '--kubeconfig', 'none'],
      /cannot load none/,
    ],
    ['no configuration', ['--event', EVENT, '--config', 'none.yaml'], /none\.yaml cannot be read/],
    ['an unknown flag', ['--evnt', 'x'], /unknown option/],
  ])('is said in a sentence, with exit code 2: %s', async (_what, args, message) => {
    const { code, stdout, stderr } = await world.run(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/\n {4}at /);
  });

  it('in the environment is listed as a whole', async () => {
    const { code, stderr } = await world.run(['--event', EVENT, '--publish', 'note'], {
      ...{ GITLAB_TOKEN_RO: '', ACTION_TOKEN: '', MODEL_KEY: '' },
    });
    expect(code).toBe(2);
    for (const name of ['GITLAB_TOKEN_RO', 'ACTION_TOKEN', 'MODEL_KEY', 'HUMMINGBIRD_MARKER_KEYS'])
      expect(stderr).toContain(`  ${name} (`);
  });

  it('on the machine is said with the command that mends it: podman is missing', async () => {
    await mkdir(world.path('bin'), { recursive: true });
    const { code, stdout, stderr } = await world.run(['--event', EVENT], { PATH: world.path('bin') });
    expect(code).toBe(4);
    expect(stderr).toContain('apt-get install podman');
    expect(stdout).toContain('podman is not installed');
  });

  it('at the model is said with its words: a wrong key', async () => {
    const { code, stderr } = await world.run(['--event', EVENT], { MODEL_KEY: 'wrong-key-0001' });
    expect(code).toBe(1);
    expect(stderr).toMatch(/ModelError: .*401/);
    expect(stderr).not.toContain('wrong-key-0001');
  });

  it('at GitLab is said with its words: no such merge request', async () => {
    const { code, stderr } = await world.run(['--event', JSON.stringify({ project: PROJECT, iid: 99 })]);
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /group\/app!99: GitLab answers 404.*check the event and the workflow's read token/,
    );
  });

  it('about time has an exit code of its own', async () => {
    await world.configure({ timeout: '4s' });
    const { code, stdout } = await world.run(['--event', wish('hang')]);
    expect(code).toBe(5);
    expect(stdout).toContain('The analysis ran out of time.');
  });
});

function fail(): never {
  throw new Error('the model was asked');
}

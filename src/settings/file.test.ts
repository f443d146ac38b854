import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readEnvSecrets, validateEnv } from './environment.ts';
import { loadConfig, loadServedConfig, workflowsOf } from './file.ts';
import { createReferences } from './references.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'config-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const ENV = { READ: 'glpat-read-1', WRITE: 'glpat-write-1', GOOGLE_API_KEY: 'AIza-1' };

async function load(text: string, env: Record<string, string> = ENV, model?: string) {
  const path = join(folder, 'hummingbird.yaml');
  await writeFile(path, text);
  return loadConfig(path, { env, ...(model === undefined ? {} : { model }) });
}

const SMALL = `
workflows:
  review:
    data_sources: {gitlab: {token_env: READ}}
    projects:
      group/app:
        action_tokens: {gitlab: WRITE}
`;

describe('the configuration file', () => {
  it('becomes workflows in the operator’s own shape, with the documented defaults', async () => {
    const { settings, workflows } = await load(SMALL);
    expect(settings).toMatchObject({
      gitlab_url: 'https://gitlab.com',
      session_marker_prefix: 'hummingbird-session',
    });
    expect(workflows[0]?.workflow).toMatchObject({
      kind: 'AgentWorkflow',
      metadata: { name: 'review' },
      spec: {
        prompt: { builtin: 'review' },
        model: {
          name: 'gemini-3.1-pro-preview',
          provider: 'Gemini',
          apiKeySecretRef: { key: 'GOOGLE_API_KEY' },
        },
        limits: { maxIterations: 30, contextTokens: 60_000, timeout: '25m', maxRunsPerMergeRequest: 5 },
        triggers: [{ event: 'Pipeline', ignoreUsers: [], ignoreBranches: [] }],
        publish: { kind: 'Note', internal: true, progress: false },
        dataSources: { gitlab: { tokenSecretRef: { name: 'environment-tool', key: 'READ' } } },
        projects: [
          {
            path: 'group/app',
            actionTokenSecretRef: { name: 'environment-action', key: 'WRITE' },
            tokens: {},
          },
        ],
      },
    });
  });

  it('reads a prompt relative to itself, word for word', async () => {
    await writeFile(join(folder, 'own.md'), '# Look\n\nat it.\n');
    const { workflows } = await load(SMALL.replace('  review:', '  review:\n    prompt: own.md'));
    expect(workflows[0]?.workflow.spec.prompt).toEqual({ text: '# Look\n\nat it.\n' });
  });

  it('lets a workflow and a project say otherwise than the settings', async () => {
    const { workflows } = await load(`
settings: {max_iterations: 20, internal_notes: false, progress_notes: true}
workflows:
  review:
    max_iterations: 40
    trigger: merge_request
    trigger_rules: [{action: deny, title: ["Draft:*"]}, {action: allow}]
    model: {name: mine, base_url: "http://127.0.0.1:1/v1"}
    projects: {group/app: {max_iterations: 7, internal_notes: true}, group/other: }
`);
    expect(workflows[0]?.workflow.spec).toMatchObject({
      limits: { maxIterations: 40 },
      publish: { internal: false, progress: true },
      triggers: [
        { event: 'MergeRequest', rules: [{ action: 'Deny', title: ['Draft:*'] }, { action: 'Allow' }] },
      ],
      model: { name: 'mine', provider: 'OpenAICompatible', baseURL: 'http://127.0.0.1:1/v1' },
      projects: [
        { path: 'group/app', limits: { maxIterations: 7 }, internal: true },
        { path: 'group/other' },
      ],
    });
  });

  it('opens other projects to the tools of a workflow, when it names them', async () => {
    const { workflows } = await load(
      SMALL.replace('token_env: READ', 'token_env: READ, allowed_projects: [group/library]'),
    );
    expect(workflows[0]?.workflow.spec.dataSources.gitlab?.allowedProjects).toEqual(['group/library']);
    const closed = await load(SMALL);
    expect(closed.workflows[0]?.workflow.spec.dataSources.gitlab?.allowedProjects).toEqual([]);
    const wrong = load(SMALL.replace('token_env: READ', 'allowed_projects: ["*"]'));
    await expect(wrong).rejects.toThrow(
      /data_sources\.gitlab\.allowed_projects\.0: must be the full path of a GitLab project/,
    );
  });

  it('finds the workflows of a project, whatever the case of its path', async () => {
    const config = await load(`
workflows:
  one: {projects: {group/app: {}}}
  two: {projects: {group/app: {}, group/other: {}}}
`);
    expect(workflowsOf(config, 'Group/App').map(({ name }) => name)).toEqual(['one', 'two']);
    expect(workflowsOf(config, 'group/none')).toEqual([]);
  });

  it.each([
    ['gemini-3-flash', ENV, 'Gemini'],
    ['gemini-3-flash', { GOOGLE_CLOUD_PROJECT: 'p' }, 'GeminiVertex'],
    ['gemini-3-flash', {}, 'Gemini'],
    ['claude-sonnet-5', { GOOGLE_CLOUD_PROJECT: 'p' }, 'AnthropicVertex'],
  ])('takes %s with %j for %s', async (model, env, provider) => {
    const { workflows } = await load(SMALL, env, model);
    expect(workflows[0]?.workflow.spec.model).toMatchObject({ name: model, provider });
  });

  it('tells all of its faults in one message, each with its place', async () => {
    const loading = load(`
settings: {colour: blue, max_iterations: 0}
workflows:
  review:
    trigger_rules: [{action: Allow}]
    data_sources: {gitlab: {token_env: ORCHESTRATOR_GITLAB_TOKEN}}
    projects: {app: {tokens: {gitlab: glpat-0123456789}}}
`);
    const message = await loading.then(String, (error: Error) => error.message);
    for (const part of [
      'settings: there is no key "colour" here',
      'settings.max_iterations: ',
      'workflows.review.trigger_rules.0.action: ',
      'workflows.review.data_sources.gitlab.token_env: begins with ORCHESTRATOR_',
      'workflows.review.projects.app: must be the full path of a GitLab project',
    ])
      expect(message).toContain(part);
  });

  it('never shows a token that stands where a name belongs', async () => {
    const loading = load(SMALL.replace('READ', 'glpat-0123456789'));
    await expect(loading).rejects.toThrow(/token_env: must be the NAME of an environment variable/);
    await expect(loading).rejects.not.toThrow(/glpat/);
  });

  it.each([
    ['action_tokens: {gitlab: ORCHESTRATOR_X}', 'action_tokens.gitlab'],
    ['tokens: {gitlab: ORCHESTRATOR_X}', 'tokens.gitlab'],
  ])('refuses the operator’s own tokens in %s', async (entry, where) => {
    const text = `workflows: {review: {projects: {group/app: {${entry}}}}}`;
    await expect(load(text)).rejects.toThrow(
      new RegExp(`projects\\.group/app\\.${where.replace('.', '\\.')}: begins with ORCHESTRATOR_`),
    );
  });

  it.each([
    ['a: [', /is not YAML/],
    ['workflows: {}', /workflows: names no workflow/],
    ['workflows: {review: {projects: {}}}', /projects: names no project/],
    ['workflows: {review: {prompt: none.md, projects: {group/app: }}}', /none\.md cannot be read \(ENOENT\)/],
    [
      '{settings: {model: mine}, workflows: {review: {projects: {group/app: }}}}',
      /model mine needs base_url/,
    ],
  ])('is refused: %s', async (text, message) => {
    await expect(load(text)).rejects.toThrow(message);
  });

  it('that is not there is named, with what to do', async () => {
    await expect(loadConfig('/nonexistent.yaml', { env: {} })).rejects.toThrow(
      /nonexistent\.yaml cannot be read .*--config/,
    );
  });

  it('names variables that are all looked for, those missing listed in one message', async () => {
    const path = join(folder, 'hummingbird.yaml');
    await writeFile(path, SMALL);
    const serving = loadServedConfig(path, { env: { READ: '' } });
    await expect(serving).rejects.toThrow(/GOOGLE_API_KEY \(settings\.model\.api_key_env\)/);
    await expect(serving).rejects.toThrow(/READ \(workflows\.review\.data_sources\.gitlab\.token_env\)/);
    await expect(serving).rejects.toThrow(
      /WRITE \(workflows\.review\.projects\.group\/app\.action_tokens\.gitlab\)/,
    );
    await expect(loadServedConfig(path, { env: ENV })).resolves.toBeDefined();
  });

  it('is the sample, when the sample is read', async () => {
    const sample = fileURLToPath(new URL('../../config/samples/hummingbird.yaml', import.meta.url));
    const config = await loadConfig(sample, { env: {} });
    expect(config.workflows.map(({ name }) => name)).toEqual(['analyze-failures', 'code-review']);
    expect(new Set(config.needs.map(({ name }) => name))).toContain('GITLAB_TOKEN_LIBRARY_RO');
    expect(workflowsOf(config, 'group/app')).toHaveLength(2);
  });
});

describe('Testing Farm in the file', () => {
  const sources = async (value: string) => {
    const { workflows } = await load(
      SMALL.replace('{gitlab: {token_env: READ}}', `{testing_farm: ${value}}`),
    );
    return workflows[0]?.workflow.spec.dataSources;
  };

  it.each(['{}', '', 'null'])('is declared by %j, with its usual addresses', async (value) => {
    expect(await sources(value)).toEqual({ testingFarm: {} });
  });

  it('may have addresses of its own', async () => {
    expect(
      await sources(
        '{artifacts_url: "https://artifacts.example.org", api_url: "https://api.example.org/v0.1"}',
      ),
    ).toEqual({
      testingFarm: { artifactsURL: 'https://artifacts.example.org', apiURL: 'https://api.example.org/v0.1' },
    });
  });
});

describe('the environment', () => {
  const references = async (env: Record<string, string> = ENV) => {
    const config = await load(SMALL);
    const seen: string[] = [];
    return {
      workflow: config.workflows[0]?.workflow ?? fail(),
      seen,
      references: createReferences({
        readSecret: readEnvSecrets(config.needs, env),
        readConfigMapKey: async () => undefined,
        readBuiltinPrompt: async () => 'P',
        onSecret: (value) => seen.push(value),
      }),
    };
  };

  it('gives each tier its own variables, and tells every value it gave', async () => {
    const { references: refs, workflow, seen } = await references();
    const read = await refs.gitlabToolToken(workflow, 'group/app');
    const write = await refs.actionToken(workflow, 'group/app');
    expect(read.kind === 'Ok' && read.value.reveal()).toBe('glpat-read-1');
    expect(write.kind === 'Ok' && write.value.reveal()).toBe('glpat-write-1');
    expect(await refs.modelKey(workflow)).toEqual({ kind: 'Ok', value: 'AIza-1' });
    expect(seen).toEqual(['glpat-read-1', 'glpat-write-1', 'AIza-1']);
  });

  it('has no variable of one tier in another', async () => {
    const read = readEnvSecrets([{ name: 'WRITE', tier: 'action', where: 'x' }], ENV);
    expect(await read('file', 'environment-tool')).toBeUndefined();
    expect(Object.keys((await read('file', 'environment-action'))?.data ?? {})).toEqual(['WRITE']);
  });

  it('gives the file that a kubeconfig variable names, not its path', async () => {
    const file = join(folder, 'konflux.kubeconfig');
    await writeFile(file, 'kind: Config\n');
    const text = SMALL.replace(
      'gitlab: {token_env: READ}',
      'konflux: {cluster_url: "https://api.example.org:6443/ns/team", kubeconfig_env: KUBECONFIG}',
    );
    const { needs, workflows } = await load(text);
    const asked = (env: Record<string, string>) =>
      createReferences({
        readSecret: readEnvSecrets(needs, env),
        readConfigMapKey: async () => undefined,
        readBuiltinPrompt: async () => 'P',
        onSecret: () => undefined,
      }).konfluxKubeconfig(workflows[0]?.workflow ?? fail());
    const found = await asked({ KUBECONFIG: file });
    expect(found.kind === 'Ok' && found.value?.reveal()).toBe('kind: Config');
    const secret = 'eyJ-somebody-put-a-token-here';
    const failure = await asked({ KUBECONFIG: secret }).catch((error: unknown) => error);
    expect(String(failure)).toMatch(
      /the file that KUBECONFIG names \(workflows\.review\.data_sources\.konflux\.kubeconfig_env\) cannot be read \(ENOENT\)/,
    );
    expect(String(failure)).not.toContain(secret);
  });

  it('names a variable once, with every place that needs it', () => {
    const needs = [1, 2].map((n) => ({ name: 'TOKEN', tier: 'tool' as const, where: `place.${n}` }));
    expect(() => validateEnv(needs, { TOKEN: ' ' })).toThrow('TOKEN (place.1, place.2)');
    expect(() => validateEnv(needs, { TOKEN: 'x' })).not.toThrow();
  });
});

function fail(): never {
  throw new Error('the configuration has a workflow');
}

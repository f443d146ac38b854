import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../file.ts';
import { ConfigError, type Fault } from './faults.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'faults-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const path = () => join(folder, 'hummingbird.yaml');

async function errorOf(text: string): Promise<ConfigError> {
  await writeFile(path(), text);
  const error = await loadConfig(path(), { env: {} }).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof ConfigError) return error;
  throw new Error(`expected faults, got ${error}`);
}

const short = ({ line, column, where, message }: Fault) => `${line}:${column} ${where}: ${message}`;

describe('the faults of a configuration file', () => {
  it('are told all at once, in the order of their lines, each with its column, its key and what to do', async () => {
    const { faults } = await errorOf(`settings:
  max_iteration: 20
  timeout: 25 minutes
  internal_notes: "yes"
workflows:
  review:
    prompt: missing.md
    sandbox: k8pool
    trigger: pipelin
    trigger_rules:
      - {action: allow, title: ["/(/", "Draft:*"]}
      - action: forbid
    data_sources:
      gitlab: {token_env: ORCHESTRATOR_TOKEN}
      konflux: {cluster_url: "https://api.example.org:6443"}
    projects:
      group/app:
        action_tokens: {gitlab: ORCHESTRATOR_TOKEN}
        max_runs_per_mr: 0
      Group/App: {}
      app: {}
`);
    expect(faults.map(short)).toEqual([
      '2:3 settings: there is no key "max_iteration" here; did you mean max_iterations?',
      '3:12 settings.timeout: must be a Go duration such as 90s, 25m or 1h30m (days are written in hours: 360h)',
      '4:19 settings.internal_notes: must be true or false, not text',
      `7:13 workflows.review.prompt: ${join(folder, 'missing.md')} cannot be read (ENOENT); the path is relative to the configuration`,
      '8:14 workflows.review.sandbox: must be one of podman, k8s, k8spool, kubevirt, kubevirtpool, none; did you mean k8spool?',
      '9:14 workflows.review.trigger: must be one of pipeline, merge_request, none; did you mean pipeline?',
      expect.stringMatching(
        /^11:33 workflows\.review\.trigger_rules\.0\.title\.0: is not a regular expression: /,
      ),
      '12:17 workflows.review.trigger_rules.1.action: must be one of allow, deny',
      "14:27 workflows.review.data_sources.gitlab.token_env: begins with ORCHESTRATOR_: such tokens are the operator's own and cannot be given to tools or notes; use another variable",
      '15:7 workflows.review.data_sources.konflux.kubeconfig_env: is missing; add text',
      '15:30 workflows.review.data_sources.konflux.cluster_url: must end in /ns/ and the namespace, as https://api.example.org:6443/ns/team-tenant',
      "18:33 workflows.review.projects.group/app.action_tokens.gitlab: begins with ORCHESTRATOR_: such tokens are the operator's own and cannot be given to tools or notes; use another variable",
      '19:26 workflows.review.projects.group/app.max_runs_per_mr: must be 1 or more',
      '20:7 workflows.review.projects.Group/App: stands twice, first on line 17: remove one of them',
      '21:7 workflows.review.projects.app: must be the full path of a GitLab project such as group/app, without host or .git',
    ]);
  });

  it('stand in the message as file:line:column, which editors make a link', async () => {
    const { message } = await errorOf(
      'settings: {colour: blue}\nworkflows: {review: {projects: {group/app: }}}\n',
    );
    expect(message.split('\n')).toEqual([
      `configuration ${path()}: 1 fault`,
      expect.stringMatching(
        /hummingbird\.yaml:1:12: settings: there is no key "colour" here; there are: gitlab_url, sandbox, /,
      ),
    ]);
  });

  it.each([
    [
      'a key that stands twice',
      'settings: {timeout: 1m, timeout: 2m}\nworkflows: {r: {projects: {g/a: }}}',
      ['1:25 settings.timeout: stands twice, first on line 1: remove one of them'],
    ],
    ['a file of another kind', '- a\n- b\n', ['1:1 : must be a map of keys and values, not a list']],
    ['an empty file', '', ['1:1 : must be a map of keys and values, not empty']],
    ['no workflow at all', 'settings: {}\n', ['1:1 workflows: is missing; add a map of keys and values']],
    [
      'a model without an address',
      'workflows:\n  r: {model: mine, projects: {g/a: }}\n',
      [
        '2:14 workflows.r.model: the model mine needs base_url, the address of its OpenAI-compatible endpoint up to and with /v1',
      ],
    ],
    ['an alias of nothing', 'workflows: *none\n', [expect.stringMatching(/^1:12 : is not YAML: /)]],
  ])('name %s', async (_, text, expected) => {
    expect((await errorOf(text)).faults.map(short)).toEqual(expected);
  });

  it('of the syntax are told with their places, all of them', async () => {
    const { faults } = await errorOf('settings: {a: 1\nworkflows: ]\n');
    expect(faults.length).toBeGreaterThan(0);
    for (const { line, message } of faults) {
      expect(message).toMatch(/^is not YAML: /);
      expect(line).toBeLessThanOrEqual(3);
    }
  });

  it('of what an alias stands for are told where it is written', async () => {
    const { faults } = await errorOf(`workflows:
  one: {projects: &all {group/app: {internal_notes: 3}}}
  two: {projects: *all}
`);
    expect(faults.map(({ line, where }) => `${line} ${where}`)).toEqual([
      '2 workflows.one.projects.group/app.internal_notes',
      '2 workflows.two.projects.group/app.internal_notes',
    ]);
  });

  it('never show a value: a token may stand where its name belongs', async () => {
    const secret = 'glpat-0123456789abcdef';
    const { message } =
      await errorOf(`settings: {timeout: ${secret}, max_iterations: ${secret}, gitlab_url: ${secret}}
workflows:
  review:
    sandbox: ${secret}
    data_sources: {gitlab: {token_env: ${secret}}}
    projects: {group/app: {tokens: {gitlab: ${secret}}, internal_notes: ${secret}}}
`);
    expect(message).toContain('7 faults');
    expect(message).not.toContain('glpat');
  });
});

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { AgentWorkflowSpec } from '../crds/agent-workflow.ts';
import { SandboxPoolSpec } from '../crds/sandbox-pool.ts';
import { envSecretRef } from '../settings/environment.ts';
import { clusterSecretRef } from '../settings/file/cluster-secrets.ts';
import { loadConfig } from '../settings/file.ts';
import { runConfigTask } from './config.ts';
import type { ConfigTask } from './config-command.ts';

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'config-'));
  file = join(folder, 'hummingbird.yaml');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const CANARY = 'glpat-canary-0123456789';
const ENV = { READ: CANARY, WRITE: CANARY, GOOGLE_API_KEY: CANARY, KUBECONFIG: '/etc/kubeconfig' };

async function asked(text: string, task: Partial<ConfigTask>, env: Record<string, string> = ENV) {
  await writeFile(file, text);
  let out = '';
  const stdout = { write: (part: string) => (out += part) };
  const whole = { kind: 'check', file, json: false, environment: false, ...task } as ConfigTask;
  return { code: await runConfigTask(whole, { env, stdout }), out };
}

const TO_CRS = { kind: 'to-crs', namespace: 'agents', sandboxNamespace: 'boxes' } as const;

const FULL = `
settings:
  gitlab_url: https://gitlab.example.org
  sandbox: {image: "registry.example.org/sandbox:2", linger_seconds: 60, egress_probe: false}
  max_concurrent_agents: 9
workflows:
  review:
    description: Look
    prompt: own.md
    trigger: merge_request
    trigger_rules: [{action: deny, title: ["/^chore/"]}, {action: allow, branch: [main]}]
    ignore_users: ["*-bot"]
    max_iterations: 7
    budget_usd: "1.50"
    timeout: 10m
    data_sources:
      gitlab: {token_env: READ, allowed_projects: [group/lib]}
      konflux: {cluster_url: "https://api.example.org:6443/ns/team", kubeconfig_env: KUBECONFIG}
      testing_farm:
    projects:
      group/app: {action_tokens: {gitlab: WRITE}, max_runs_per_mr: 2, internal_notes: false}
      group/lib: {action_tokens: {gitlab: WRITE}, tokens: {gitlab: READ}}
  plain:
    sandbox: none
    model: {name: mine, base_url: "http://models.example.org/v1"}
    projects: {group/app: {action_tokens: {gitlab: WRITE}}}
`;

describe('hummingbird config check', () => {
  it('says what a good file has, with exit code 0', async () => {
    await writeFile(join(folder, 'own.md'), 'Look at it.');
    const { code, out } = await asked(FULL, {});
    expect({ code, out }).toEqual({
      code: 0,
      out: `${file}: 2 workflows (review, plain) for 2 projects\n`,
    });
  });

  it('says all faults of a bad one, with exit code 2', async () => {
    const { code, out } = await asked('settings: {colour: 1}\nworkflows: {}\n', {});
    expect(code).toBe(2);
    expect(out).toContain(
      `configuration ${file}: 2 faults\n${file}:1:12: settings: there is no key "colour"`,
    );
    expect(out).toContain(`${file}:2:12: workflows: names no workflow`);
  });

  it('says them to programs', async () => {
    const { code, out } = await asked('workflows: {}\n', { json: true });
    expect(code).toBe(2);
    expect(JSON.parse(out)).toEqual({
      path: file,
      ok: false,
      faults: [{ line: 1, column: 12, where: 'workflows', message: 'names no workflow; add one' }],
    });
  });

  it('asks for the environment when told to, and names all that is missing', async () => {
    await writeFile(join(folder, 'own.md'), 'Look at it.');
    expect(await asked(FULL, { environment: true })).toMatchObject({ code: 0 });
    const { code, out } = await asked(FULL, { environment: true }, { READ: CANARY });
    expect(code).toBe(2);
    expect(out).toMatch(/GOOGLE_API_KEY \(settings\.model\.api_key_env\)/);
    expect(out).toMatch(/WRITE \(workflows\.review\.projects\.group\/app\.action_tokens\.gitlab, /);
    expect(out).not.toContain(CANARY);
  });

  it('throws for a file that is not there', async () => {
    const stdout = { write: () => undefined };
    const task = { kind: 'check', file: '/nonexistent.yaml', json: false, environment: false } as const;
    await expect(runConfigTask(task, { env: {}, stdout })).rejects.toThrow(/cannot be read \(ENOENT\)/);
  });
});

describe('hummingbird config to-crs', () => {
  const objectsOf = (out: string) => parseAllDocuments(out).map((document) => document.toJS());

  it('prints resources whose workflows are those of the file, but for Secrets and sandbox', async () => {
    await writeFile(join(folder, 'own.md'), '# Look\n\nat it: "all", & more.\n');
    const { code, out } = await asked(FULL, TO_CRS);
    expect(code).toBe(0);
    const [pool, ...workflows] = objectsOf(out);
    expect(pool).toMatchObject({
      kind: 'SandboxPool',
      metadata: { name: 'analysis', namespace: 'boxes' },
      spec: { pod: { image: 'registry.example.org/sandbox:2' }, linger: { duration: '60s', max: 2 } },
    });
    expect(SandboxPoolSpec.safeParse(pool.spec).success).toBe(true);

    const config = await loadConfig(file, { env: ENV });
    const inCluster = new Map(
      config.needs.map((need) => [JSON.stringify(envSecretRef(need)), clusterSecretRef(need)]),
    );
    const expected = config.workflows.map(({ name, workflow: { spec }, backend }) => {
      const moved = JSON.parse(
        JSON.stringify(spec),
        (_, value) => inCluster.get(JSON.stringify(value)) ?? value,
      );
      const sandbox =
        backend === 'none' ? { none: true } : { poolRef: { name: 'analysis', namespace: 'boxes' } };
      return { name, namespace: 'agents', spec: { ...moved, sandbox } };
    });
    const found = workflows.map(({ metadata, spec }) => ({
      ...metadata,
      spec: AgentWorkflowSpec.parse(spec),
    }));
    expect(JSON.parse(JSON.stringify(found))).toEqual(expected);
    expect(JSON.stringify(found)).not.toContain('environment-');
  });

  it('names Secrets with the commands that make them, and never a value', async () => {
    await writeFile(join(folder, 'own.md'), 'Look at it.');
    const { out } = await asked(FULL, TO_CRS);
    expect(out).not.toContain(CANARY);
    expect(out).toContain('#   printf %s "$WRITE" | kubectl create secret generic action-write -n agents ');
    expect(out).toContain('--from-file=kubeconfig="$KUBECONFIG"');
    expect(out).toContain('#   --gitlab-url https://gitlab.example.org\n');
    expect(out).toContain('#   --max-concurrent-runs 9\n');
  });

  it('makes a pool of machines where a workflow wants one', async () => {
    const { out } = await asked(
      'workflows: {r: {sandbox: kubevirtpool, projects: {g/a: {action_tokens: {gitlab: WRITE}}}}}',
      TO_CRS,
    );
    const [pool] = objectsOf(out);
    expect(pool.spec).toMatchObject({ backend: 'VirtualMachineInstance' });
    const parsed = SandboxPoolSpec.safeParse(pool.spec);
    expect(parsed.error?.issues).toBeUndefined();
  });

  it('refuses what the operator could not do, all of it at once', async () => {
    const asking = asked(
      'workflows:\n  r: {projects: {g/a: , g/b: }}\n  s: {model: {name: gemini-3, base_url: "http://x.example.org/v1", provider: Gemini}, projects: {g/a: {action_tokens: {gitlab: WRITE}}}}',
      TO_CRS,
    );
    await expect(asking).rejects.toThrow(
      /r\.projects\.g\/a: add action_tokens\.gitlab[\s\S]*r\.projects\.g\/b: add[\s\S]*workflows\.s: make the model's base_url scheme and host only/,
    );
  });
});

it('hummingbird config schema prints JSON', async () => {
  const { code, out } = await asked('', { kind: 'schema' });
  expect({ code, title: JSON.parse(out).title }).toEqual({ code: 0, title: 'Configuration of Hummingbird' });
});

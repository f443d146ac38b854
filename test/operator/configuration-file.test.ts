import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AgentWorkflow } from '../../src/crds/agent-workflow.ts';
import { sharedCluster } from '../cluster/shared.ts';
import { aWorld, type World } from './world.ts';

/** The operator looks every 10 s; the rest is for a loaded machine. */
const SEEN = { timeout: 120_000, interval: 500 };

let folder: string;
let file: string;
let world: World;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'configuration-file-'));
  file = join(folder, 'hummingbird.yaml');
  await writeFile(join(folder, 'own.md'), 'Look at it.');
  await write(['kept', 'goes', 'analyze-failures']);
  world = await aWorld(await sharedCluster(), {
    replicas: 0,
    scripts: { 'test-script': () => ({ text: 'Seen.' }) },
    workflowSpec: { sandbox: { none: true } },
    operator: async ({ namespaces }) => {
      const rights = new URL('../../config/configuration-file/rbac.yaml', import.meta.url);
      const yaml = (await readFile(fileURLToPath(rights), 'utf8')).replace(
        /namespace: hummingbird\b/g,
        `namespace: ${namespaces.agents}`,
      );
      await (await sharedCluster()).kubectl(['apply', '--server-side', '-f', '-'], yaml);
      return { args: [`--config=${file}`] };
    },
  });
  await world.operator.waitReady(120_000);
}, 300_000);
afterAll(async () => {
  await world?.close();
  await rm(folder, { recursive: true, force: true });
});

const write = (names: readonly string[], iterations = 7) =>
  writeFile(
    file,
    `settings: {max_iterations: ${iterations}}
workflows:
${names.map((name) => `  ${name}: {prompt: own.md, model: gemini-3, sandbox: none, projects: {group/app: {action_tokens: {gitlab: BOT}}}}\n`).join('')}`,
  );

async function workflows(): Promise<Readonly<Record<string, AgentWorkflow>>> {
  const text = await world.kubectl(['get', 'agentworkflows', '-n', world.namespaces.agents, '-o', 'json']);
  const { items }: { items: readonly AgentWorkflow[] } = JSON.parse(text);
  return Object.fromEntries(items.map((workflow) => [workflow.metadata.name ?? '', workflow]));
}

const names = async () => Object.keys(await workflows()).sort();

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${world.operator.healthUrl}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
}

it('makes the workflows that the configuration file names, and leaves one alone that somebody else made', async () => {
  await expect.poll(names, SEEN).toEqual(['analyze-failures', 'goes', 'kept']);
  const { kept, 'analyze-failures': own } = await workflows();
  expect(kept).toMatchObject({
    metadata: { labels: { 'hummingbird.dev/made-from': 'file' } },
    spec: { prompt: { text: 'Look at it.' }, limits: { maxIterations: 7 } },
  });
  await expect.poll(() => world.events('analyze-failures'), SEEN).toContain('NotFromFile');
  expect(own?.spec.model.provider).toBe('OpenAICompatible');
  expect(own?.metadata.labels).toBeUndefined();
  await expect.poll(() => metric('hummingbird_config_reload_left_alone'), SEEN).toBe(1);
});

it('keeps them while the file is faulty, and says every fault with its place', async () => {
  const before = await workflows();
  await writeFile(file, `settings: {max_iteration: 9}\nworkflows: {kept: {projects: {}}}\n`);
  await expect.poll(() => metric('hummingbird_config_reload_faults'), SEEN).toBeGreaterThan(1);
  const { log, healthUrl } = world.operator;
  expect(log()).toContain(`${file}:1:12: settings: there is no key`);
  expect(log()).toContain(`${file}:2:`);
  const ready = await fetch(`${healthUrl}/readyz`);
  expect(ready.status).toBe(200);
  expect(await ready.text()).toContain(`configuration: ok, but ${file} has`);
  await expect.poll(() => world.events('kept'), SEEN).toContain('ConfigurationFaulty');
  const generations = (all: Readonly<Record<string, AgentWorkflow>>) =>
    Object.entries(all).map(([name, { metadata }]) => `${name} ${metadata.generation}`);
  expect(generations(await workflows())).toEqual(generations(before));
});

it('takes up the mended file without a restart, and deletes what is not in it any more', async () => {
  await write(['kept'], 9);
  await expect.poll(names, SEEN).toEqual(['analyze-failures', 'kept']);
  await expect.poll(async () => (await workflows())['kept']?.spec.limits.maxIterations, SEEN).toBe(9);
  await expect.poll(() => metric('hummingbird_config_reload_faults'), SEEN).toBe(0);
  // Whoever changes one by hand is overruled.
  const patch = ['--type=merge', '-p', '{"spec":{"limits":{"maxIterations":3}}}'];
  await world.kubectl(['patch', 'agentworkflow/kept', '-n', world.namespaces.agents, ...patch]);
  await expect.poll(async () => (await workflows())['kept']?.spec.limits.maxIterations, SEEN).toBe(9);
});

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runConfigTask } from '../../src/cli/config.ts';
import { cleanUp, kubectl, type Namespaces, prepare } from './kubectl.ts';

let namespaces: Namespaces;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'from-file-'));
  namespaces = await prepare();
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  await cleanUp(namespaces);
});

async function resourcesOf(file: string): Promise<string> {
  let out = '';
  const task = {
    kind: 'to-crs',
    file,
    namespace: namespaces.agents,
    sandboxNamespace: namespaces.sandboxes,
  } as const;
  const env = { GOOGLE_CLOUD_PROJECT: 'team' };
  await runConfigTask(task, { env, stdout: { write: (part: string) => (out += part) } });
  return out;
}

it('the API server takes what the sample of a configuration file becomes', async () => {
  const sample = fileURLToPath(new URL('../../config/samples/hummingbird.yaml', import.meta.url));
  const text = await resourcesOf(sample);
  const said = await kubectl(['apply', '--dry-run=server', '-f', '-'], text);
  expect(said).toMatch(/sandboxpool.*created[\s\S]*analyze-failures created[\s\S]*code-review created/);
});

it('the API server takes workflows of every provider, and machines', async () => {
  const file = join(folder, 'hummingbird.yaml');
  const projects = 'projects: {group/app: {action_tokens: {gitlab: BOT}}}';
  await writeFile(
    file,
    `workflows:
  gemini: {prompt: own.md, model: {name: gemini-3, provider: Gemini}, ${projects}}
  vertex: {prompt: own.md, model: gemini-3, ${projects}}
  claude: {prompt: own.md, model: claude-sonnet-5, sandbox: kubevirtpool, ${projects}}
  other: {prompt: own.md, model: {name: mine, base_url: "http://models.example.org/v1", api_key_env: KEY}, sandbox: none, ${projects}}
`,
  );
  await writeFile(join(folder, 'own.md'), 'Look at it.');
  const said = await kubectl(['apply', '--dry-run=server', '-f', '-'], await resourcesOf(file));
  for (const name of ['gemini', 'vertex', 'claude', 'other']) expect(said).toContain(`${name} created`);
});

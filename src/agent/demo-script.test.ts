import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { type DemoScene, demoScene } from '../../hack/demo/scene.ts';
import { type LocalSandbox, startLocalSandbox } from '../../test/fakes/local-sandbox.ts';
import { DEMO_MODEL, demoScript } from '../../test/fakes/openai/demo-script.ts';
import { type OpenAiServer, startOpenAi } from '../../test/fakes/openai/server.ts';
import { createHttpClient, type HttpClient } from '../http/client.ts';
import { runLoop } from './loop.ts';
import { createOpenAiModel } from './models/openai/adapter.ts';
import { defineParameters } from './tools/parameters.ts';
import type { Tool, ToolOutput } from './tools/port.ts';
import { createRegistry } from './tools/registry.ts';

let http: HttpClient;
let scene: DemoScene;
let sandbox: LocalSandbox;
let server: OpenAiServer;
beforeEach(async () => {
  http = createHttpClient();
  sandbox = await startLocalSandbox();
  server = await startOpenAi({ scripts: { [DEMO_MODEL]: demoScript } });
});
afterEach(async () => {
  await server.stop();
  await sandbox.cleanup();
  await http.close();
  await scene?.gitlab.stop();
});

function tool(
  name: string,
  shape: z.ZodObject,
  run: (args: Record<string, unknown>) => Promise<ToolOutput>,
): Tool {
  const { schema, parse } = defineParameters(shape);
  const isRecord = z.record(z.string(), z.unknown());
  return {
    definition: { name, description: name, parameters: schema },
    parse,
    run: (args) => run(isRecord.parse(args)),
  };
}

/** Plain readers of the stand-in's API: the real tools have their own tests. */
function gitlabTools(change: (log: string) => string = (log) => log): readonly Tool[] {
  const get = async (path: string): Promise<string> => {
    const url = `${scene.gitlab.url}/api/v4/projects/${encodeURIComponent(scene.projectPath)}/${path}`;
    return (await fetch(url, { headers: { 'private-token': scene.tokens.tool } })).text();
  };
  const mr = z.strictObject({ project: z.string(), iid: z.int() });
  const text = async (value: Promise<string>): Promise<ToolOutput> => ({ kind: 'Text', text: await value });
  const lines = async (path: string): Promise<string> =>
    z
      .array(z.unknown())
      .parse(JSON.parse(await get(path)))
      .map((row) => `${JSON.stringify(row)}\n`)
      .join('');
  return [
    tool('gitlab_get_mr_details', mr, async ({ iid }) => {
      const { title } = z.object({ title: z.string() }).parse(JSON.parse(await get(`merge_requests/${iid}`)));
      return { kind: 'Json', value: { title } };
    }),
    tool('gitlab_get_commit_statuses', z.strictObject({ project: z.string(), sha: z.string() }), ({ sha }) =>
      text(lines(`repository/commits/${sha}/statuses`)),
    ),
    tool('gitlab_get_job_log', z.strictObject({ project: z.string(), job_id: z.int() }), async ({ job_id }) =>
      text(get(`jobs/${job_id}/trace`).then((log) => change(stripVTControlCharacters(log)))),
    ),
    tool('gitlab_get_mr_diff', mr, ({ iid }) => text(get(`merge_requests/${iid}/diffs`))),
  ];
}

async function run(tools: readonly Tool[]) {
  const { projectPath: project, mergeRequest } = scene;
  const event = { project, iid: mergeRequest.iid, sha: mergeRequest.sha };
  return runLoop({
    model: createOpenAiModel({ name: DEMO_MODEL, baseUrl: server.url, http }),
    system: 'Analyze.',
    contents: [{ role: 'user', content: JSON.stringify(event) }],
    tools: createRegistry({ tools, sandbox }),
    limits: { maxIterations: 10, contextTokens: 60_000 },
    signal: new AbortController().signal,
  });
}

test.each([
  ['inline', (log: string) => log],
  ['in a file', (log: string) => `${'noise before\n'.repeat(5000)}${log}`],
])('the demo script finds the cause in the real log (%s) and the real diff', async (_where, change) => {
  scene = await demoScene();
  const result = await run(gitlabTools(change));
  expect(result).toMatchObject({ kind: 'Answered', iterations: 4 });
  expect(server.refusals).toEqual([]);
  expect(result.text).toContain('ten of a kind get the volume discount');
  expect(result.text).toContain('2500 !== 2250');
  expect(result.text).toContain('`test/cart.test.js:9`');
  expect(result.text).toContain('+const discount = quantity > 10 ? 0.1 : 0;');
  expect(result.text).toContain('-const discount = quantity >= 10 ? 0.1 : 0;');
  expect(result.text).toContain('Written by `demo-script`, a scripted stand-in for a model');
});

test('it says what it could not see instead of what it expects', async () => {
  scene = await demoScene();
  const broken = gitlabTools().map((one) =>
    one.definition.name === 'gitlab_get_mr_diff'
      ? { ...one, run: () => Promise.reject(new Error('503')) }
      : one,
  );
  const { text } = await run(broken);
  expect(text).toContain('no changed line stands out');
  expect(text).toContain('`gitlab_get_mr_diff`: Tool gitlab_get_mr_diff failed: 503');
  expect(text).not.toContain('> 10');
});

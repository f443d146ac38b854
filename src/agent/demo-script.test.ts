import { afterEach, beforeEach, expect, test } from 'vitest';
import { type DemoScene, demoScene } from '../../hack/demo/scene.ts';
import { Journals } from '../../test/builders/journals.ts';
import { type LocalSandbox, startLocalSandbox } from '../../test/fakes/local-sandbox.ts';
import { DEMO_MODEL, demoScript } from '../../test/fakes/openai/demo-script.ts';
import { type OpenAiServer, startOpenAi } from '../../test/fakes/openai/server.ts';
import { createHttpClient, type HttpClient } from '../http/client.ts';
import { toolToken } from '../settings/tokens.ts';
import { gitlabTools } from '../sources/gitlab/tools.ts';
import { createOpenAiModel } from './models/openai/adapter.ts';
import type { Tool, ToolOutput } from './tools/port.ts';
import { createRegistry } from './tools/registry.ts';

let http: HttpClient;
let scene: DemoScene;
let sandbox: LocalSandbox;
let server: OpenAiServer;
const journals = new Journals();
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
  await journals.replayAll();
});

/** The real tools, the log's one with something before its output. */
function toolsWith(before: string): readonly Tool[] {
  const { gitlab, projectPath: project, mergeRequest, tokens } = scene;
  const source = { http, baseUrl: gitlab.url, token: toolToken(tokens.tool) };
  const tools = gitlabTools(source, { project, iid: mergeRequest.iid, sha: mergeRequest.sha });
  return tools.map((tool) =>
    tool.definition.name === 'gitlab_get_job_log'
      ? { ...tool, run: async (args, context) => prefixed(before, await tool.run(args, context)) }
      : tool,
  );
}

function prefixed(before: string, output: ToolOutput): ToolOutput {
  if (output.kind !== 'Stream') return output;
  async function* chunks(rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    yield Buffer.from(before);
    yield* rest;
  }
  return { ...output, chunks: chunks(output.chunks) };
}

async function run(tools: readonly Tool[]) {
  const { projectPath: project, mergeRequest } = scene;
  const event = { project, iid: mergeRequest.iid, sha: mergeRequest.sha };
  return journals.run({
    model: createOpenAiModel({ name: DEMO_MODEL, baseUrl: server.url, http }),
    system: 'Analyze.',
    contents: [{ role: 'user', content: JSON.stringify(event) }],
    tools: createRegistry({ tools, sandbox }),
    limits: { maxIterations: 10, contextTokens: 60_000 },
    signal: new AbortController().signal,
  });
}

test.each([
  ['inline', ''],
  ['in a file', 'noise before\n'.repeat(5000)],
])('the demo script finds the cause in the real log (%s) and the real diff', async (_where, before) => {
  scene = await demoScene();
  const result = await run(toolsWith(before));
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
  const broken = toolsWith('').map((one) =>
    one.definition.name === 'gitlab_get_mr_diff'
      ? { ...one, run: () => Promise.reject(new Error('503')) }
      : one,
  );
  const { text } = await run(broken);
  expect(text).toContain('no changed line stands out');
  expect(text).toContain('`gitlab_get_mr_diff`: Tool gitlab_get_mr_diff failed: 503');
  expect(text).not.toContain('> 10');
});

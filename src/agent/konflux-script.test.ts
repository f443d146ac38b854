import { afterEach, beforeEach, expect, test } from 'vitest';
import { POD, podLog, REQUEST_ID, TESTS, testPod, tests } from '../../hack/demo/konflux/objects.ts';
import { type KonfluxScene, konfluxScene } from '../../hack/demo/konflux/scene.ts';
import { type DemoScene, demoScene } from '../../hack/demo/scene.ts';
import { Journals } from '../../test/builders/journals.ts';
import { kubeconfigFor, NAMESPACE, TOKEN } from '../../test/builders/konflux.ts';
import { type FakeKubeArchive, startKubeArchive } from '../../test/fakes/kubearchive/server.ts';
import { type LocalSandbox, startLocalSandbox } from '../../test/fakes/local-sandbox.ts';
import { KONFLUX_MODEL, konfluxScript } from '../../test/fakes/openai/konflux-script.ts';
import { type OpenAiServer, startOpenAi } from '../../test/fakes/openai/server.ts';
import { createHttpClient, type HttpClient } from '../http/client.ts';
import { toolToken } from '../settings/tokens.ts';
import { toolsOf } from '../sources/factory.ts';
import { openKonflux } from '../sources/konflux/tools.ts';
import { createOpenAiModel } from './models/openai/adapter.ts';
import { createRegistry } from './tools/registry.ts';

let http: HttpClient;
let scene: DemoScene;
let konflux: KonfluxScene;
/** In the place of the cluster, whose lists and logs have the same form. */
let cluster: FakeKubeArchive;
let sandbox: LocalSandbox;
let server: OpenAiServer;
const journals = new Journals();
beforeEach(async () => {
  http = createHttpClient();
  scene = await demoScene('Elsewhere');
  konflux = await konfluxScene({ ...scene, project: scene.pipeline.project }, NAMESPACE);
  cluster = await startKubeArchive();
  sandbox = await startLocalSandbox();
  server = await startOpenAi({ scripts: { [KONFLUX_MODEL]: konfluxScript } });
  const { sha } = scene.mergeRequest;
  const page = `${konflux.farm.artifactsUrl}/${REQUEST_ID}/`;
  cluster.state.keep(...tests(NAMESPACE, sha));
  cluster.state.keep(testPod(NAMESPACE, sha, 'image', page) as Parameters<typeof cluster.state.keep>[0]);
  cluster.state.keepLog(NAMESPACE, POD, 'step-run-tests', podLog(sha, page).join('\n'));
  for (const { state } of [cluster, konflux.archive]) state.grant(TOKEN, NAMESPACE);
  konflux.archive.state.keep(...tests(NAMESPACE, sha).slice(0, 1));
});
afterEach(async () => {
  expect(konflux.farm.violations).toEqual([]);
  expect(konflux.archive.violations).toEqual([]);
  await Promise.all([server.stop(), sandbox.cleanup(), http.close(), scene.gitlab.stop(), konflux.stop()]);
  await cluster.stop();
  await journals.replayAll();
});

async function run() {
  const { projectPath: project, mergeRequest, gitlab, tokens } = scene;
  const { iid, sha } = mergeRequest;
  const opened = openKonflux({
    http,
    clusterUrl: `${cluster.url}/ns/${NAMESPACE}`,
    kubearchiveUrl: konflux.archive.url,
    kubeconfig: toolToken(kubeconfigFor(cluster.url)),
  });
  if (opened.kind === 'Invalid') throw new Error(opened.message);
  const declared = {
    gitlab: { token: toolToken(tokens.tool), allowedProjects: [] },
    konflux: opened.access,
    testingFarm: { artifactsUrl: konflux.farm.artifactsUrl, apiUrl: konflux.farm.apiUrl },
  };
  const tools = toolsOf(declared, { http, gitlabUrl: gitlab.url }, { project, iid, sha });
  const registry = createRegistry({ tools, sandbox });
  return journals.run({
    model: createOpenAiModel({ name: KONFLUX_MODEL, baseUrl: server.url, http }),
    system: `Analyze.\n\n${registry.notes()}`,
    contents: [{ role: 'user', content: JSON.stringify({ project, iid, sha }) }],
    tools: registry,
    limits: { maxIterations: 12, contextTokens: 60_000 },
    signal: new AbortController().signal,
  });
}

test('the script goes from GitLab through Konflux to the log in Testing Farm, and finds the cause in it', async () => {
  const result = await run();
  expect(result).toMatchObject({ kind: 'Answered', iterations: 8 });
  expect(server.refusals).toEqual([]);
  const { text } = result;
  expect(text).toContain('1 root cause of “Count in cents” (change)');
  expect(text).toContain('ten of a kind get the volume discount');
  expect(text).toContain('2500 !== 2250');
  expect(text).toContain('+const discount = quantity > 10 ? 0.1 : 0;');
  expect(text).toContain(`[${REQUEST_ID}](${konflux.farm.artifactsUrl}/${REQUEST_ID}/)`);
  expect(text).toContain(`/ns/${NAMESPACE}/pipelinerun/${TESTS}`);
  expect(text).not.toContain('Not looked at');
});

test('without Testing Farm it reports what Konflux says, and what it could not read', async () => {
  konflux.farm.faults.push({ path: /./, times: 99, status: 403 });
  const result = await run();
  expect(result.text).toContain(`failed** in TaskRun \`${TESTS}-run-tests\``);
  expect(result.text).toContain('Not looked at');
  expect(result.text).toContain('tf_get_request_status');
});

// npm run demo: from a failed pipeline's webhook to the note on the merge request, on a real cluster.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { AgentRun } from '../../src/crds/agent-run.ts';
import { pipelineHook } from '../../test/fakes/gitlab/webhooks.ts';
import { DEMO_MODEL } from '../../test/fakes/openai/demo-script.ts';
import { KONFLUX_MODEL } from '../../test/fakes/openai/konflux-script.ts';
import {
  apply,
  DEFAULT_NAMESPACES,
  installDefinitions,
  installNamespaces,
  uninstall,
} from '../operator/install.ts';
import { pool, tokenSecret, workflow } from '../operator/objects.ts';
import { type OperatorProcess, startOperatorProcess } from '../operator/process.ts';
import { type DemoCluster, existingCluster, ownCluster } from './cluster.ts';
import { installKonflux } from './konflux/install.ts';
import { readings } from './konflux/readings.ts';
import { type KonfluxScene, konfluxScene } from './konflux/scene.ts';
import { type DemoScene, demoScene } from './scene.ts';
import { type DemoAws, type DemoModel, startAws, startModel } from './services.ts';
import { show, watchLive } from './show.ts';

const USAGE = `npm run demo [-- OPTIONS]
  --keep            leave everything running until Ctrl-C, and say how to use it with kubectl
  --context NAME    use this kubectl context instead of a cluster of the demo's own; needs --image
  --konflux         tests that ran in Konflux and Testing Farm: the run reads all data sources; not with --context
  --image REF       sandbox image that the cluster can pull (sh, jq, python3, tar; runs as any non-root user)
MODEL_BASE_URL, MODEL_NAME and MODEL_API_KEY choose any OpenAI-compatible model instead of the scripted stand-in.`;

const namespaces = DEFAULT_NAMESPACES;
const terminal = show();
const cleanups: { readonly what: string; run(): Promise<unknown> }[] = [];
let cleaning: Promise<void> | undefined;

try {
  const { values: options } = parseArgs({
    options: {
      keep: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
      konflux: { type: 'boolean', default: false },
      context: { type: 'string' },
      image: { type: 'string' },
    },
  });
  if (options.help) console.log(USAGE);
  else {
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => void cleanUp().then(() => process.exit(130)));
    if (options.konflux && options.context !== undefined)
      throw new Error(
        '--konflux makes PipelineRuns and TaskRuns, which a Tekton of yours would run: leave --context out, or --konflux',
      );
    await demo(options);
    await cleanUp();
  }
} catch (error) {
  console.error(`\nThe demo stopped: ${error instanceof Error ? error.message : error}`);
  await cleanUp();
  process.exitCode = 1;
}
process.exit();

interface DemoOptions {
  readonly context?: string | undefined;
  readonly image?: string | undefined;
  readonly keep: boolean;
  readonly konflux: boolean;
}

async function demo({ context, image, keep, konflux: withKonflux }: DemoOptions): Promise<void> {
  terminal.step(
    context === undefined
      ? 'Starting a cluster of its own (API server, kubelet, containerd)'
      : `Using context ${context}`,
  );
  const cluster = await clusterOf(context, image);
  terminal.step('Starting SQS and S3 (fauxqs), a GitLab stand-in and the model');
  const [aws, scene, model] = await Promise.all([
    startAws(),
    demoScene(withKonflux ? 'Elsewhere' : 'InJob'),
    startModel(process.env, withKonflux ? KONFLUX_MODEL : DEMO_MODEL),
  ]);
  cleanups.push(
    { what: 'SQS and S3', run: () => aws.stop() },
    { what: 'GitLab stand-in', run: () => scene.gitlab.stop() },
    { what: 'model', run: () => model.stop() },
  );
  const { mergeRequest, pipeline } = scene;
  terminal.detail(
    `merge request ${scene.projectPath}!${mergeRequest.iid} "${mergeRequest.title}", pipeline ${pipeline.id} ${pipeline.status}`,
  );
  terminal.detail(
    model.scripted
      ? `model ${model.name}: a scripted stand-in, behind a real endpoint`
      : `model ${model.name} at ${model.baseUrl}`,
  );

  terminal.step('Applying CRDs, namespaces, RBAC, Secrets, a SandboxPool and an AgentWorkflow');
  const konflux = withKonflux ? await startKonflux(scene) : undefined;
  await install(cluster, scene, model, konflux);
  terminal.step("Starting the operator, with its ServiceAccount's own token");
  const operator = await startOperator(cluster, scene, aws);
  await waitReady(cluster);

  terminal.step('Publishing the webhook "pipeline failed" on SNS, which puts it into SQS');
  const stopWatching = watchLive(
    cluster.kubectlCommand,
    ['get', 'agentruns', '-n', namespaces.agents],
    (line) => terminal.detail(line),
  );
  await aws.publishWebhook('pipeline', pipelineHook(scene.gitlab.url, pipeline));
  const run = await waitEnd(cluster, operator);
  await stopWatching();
  report(run, scene, aws);
  if (konflux !== undefined) {
    const metrics = await (await fetch(`${operator.healthUrl}/metrics`)).text();
    terminal.block('What was read from where', readings(scene, konflux, metrics));
  }
  terminal.block(`kubectl describe agentrun ${run.metadata.name}, the Events`, await eventsOf(cluster, run));
  if (run.status?.phase !== 'Succeeded')
    throw new Error(
      `the run ended ${run.status?.phase}: ${run.status?.outcome?.message ?? 'without a word'}; the operator's log:\n${operator.log().slice(-4000)}`,
    );
  terminal.step('Done: one webhook, one run, one note');
  if (keep) await keepRunning(cluster, scene, operator);
}

async function clusterOf(context: string | undefined, image: string | undefined): Promise<DemoCluster> {
  if (context !== undefined && image === undefined)
    throw new Error(`--context needs --image: the sandbox image that this cluster can pull\n\n${USAGE}`);
  const cluster =
    context === undefined
      ? await ownCluster((line) => terminal.detail(line))
      : await existingCluster(context, image ?? '');
  cleanups.push({ what: 'cluster', run: () => cluster.stop() });
  return cluster;
}

async function startKonflux(scene: DemoScene): Promise<KonfluxScene> {
  const konflux = await konfluxScene({ ...scene, project: scene.pipeline.project });
  cleanups.push({ what: 'KubeArchive and Testing Farm', run: () => konflux.stop() });
  terminal.detail(
    `tenant ${konflux.namespace} of Konflux: a build that only KubeArchive (a stand-in) still has,`,
  );
  terminal.detail(
    `failed tests in this cluster, their results in Testing Farm (a stand-in), request ${konflux.requestId}`,
  );
  return konflux;
}

async function install(
  cluster: DemoCluster,
  scene: DemoScene,
  model: DemoModel,
  konflux: KonfluxScene | undefined,
): Promise<void> {
  await installDefinitions(cluster);
  cleanups.push({ what: 'namespaces', run: () => uninstall(cluster, namespaces) });
  await installNamespaces(cluster, namespaces);
  const dataSources =
    konflux &&
    (await installKonflux(cluster, {
      ...{ namespaces, konflux, image: cluster.image, sha: scene.mergeRequest.sha },
    }));
  await apply(
    cluster,
    tokenSecret(namespaces.agents, 'gitlab-action', 'action', scene.tokens.action),
    tokenSecret(namespaces.agents, 'gitlab-read', 'tool', scene.tokens.tool),
    tokenSecret(namespaces.agents, 'model-key', 'model', model.apiKey),
    pool(namespaces, { image: cluster.image, replicas: 2, egressProbe: cluster.isolates }),
    workflow(namespaces, {
      project: scene.projectPath,
      model: { name: model.name, baseURL: model.baseUrl },
      ...(dataSources === undefined ? {} : { spec: { dataSources } }),
    }),
  );
}

async function startOperator(cluster: DemoCluster, scene: DemoScene, aws: DemoAws): Promise<OperatorProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'hummingbird-demo-'));
  const operator = await startOperatorProcess({
    kubeconfigPath: await cluster.kubeconfigFor(namespaces.agents, 'hummingbird-operator'),
    namespaces,
    gitlabUrl: scene.gitlab.url,
    secrets: { orchestratorToken: scene.tokens.orchestrator, markerKeys: `demo:${'5e'.repeat(32)}` },
    queue: { url: aws.queueUrl, endpoint: aws.endpoint },
    store: { bucket: aws.bucket, endpoint: aws.endpoint },
    logFile: join(folder, 'operator.log'),
  });
  cleanups.push({
    what: 'operator',
    run: async () => {
      await operator.stop();
      await rm(folder, { recursive: true, force: true });
    },
  });
  // While the operator runs: it is the one that takes their finalizers off.
  cleanups.push({ what: 'runs and sessions', run: () => deleteRuns(cluster) });
  await operator.waitReady();
  return operator;
}

async function deleteRuns(cluster: DemoCluster): Promise<void> {
  await cluster.kubectl([
    ...['delete', 'agentruns,agentsessions', '--all', '-n', namespaces.agents],
    ...['--timeout=30s', '--ignore-not-found'],
  ]);
}

async function waitReady(cluster: DemoCluster): Promise<void> {
  await cluster.kubectl([
    'wait',
    '--for=condition=Ready',
    'sandboxpool/analysis',
    '-n',
    namespaces.sandboxes,
    '--timeout=120s',
  ]);
  await cluster.kubectl([
    'wait',
    '--for=condition=Ready',
    'agentworkflow/analyze-failures',
    '-n',
    namespaces.agents,
    '--timeout=60s',
  ]);
  const table = await cluster.kubectl(['get', 'sandboxpools,agentworkflows', '-A']);
  for (const line of table.trimEnd().split('\n')) terminal.detail(line);
}

async function waitEnd(cluster: DemoCluster, operator: OperatorProcess): Promise<AgentRun> {
  const deadline = Date.now() + 10 * 60_000;
  while (Date.now() < deadline && operator.running) {
    const list: { items: AgentRun[] } = JSON.parse(
      await cluster.kubectl(['get', 'agentruns', '-n', namespaces.agents, '-o', 'json']),
    );
    const ended = list.items.find(({ status }) => status?.completionTime !== undefined);
    if (ended !== undefined) return ended;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error(`no AgentRun ended; the operator's log:\n${operator.log().slice(-4000)}`);
}

function report(run: AgentRun, scene: DemoScene, aws: DemoAws): void {
  const note = scene.mergeRequest.discussions.flatMap(({ notes }) => notes).find(({ author }) => author.bot);
  terminal.block(
    `The note on ${scene.projectPath}!${scene.mergeRequest.iid}, by ${note?.author.name ?? 'nobody'}`,
    note?.body ?? '(none)',
  );
  const { session, transcript, iterations, toolCalls, duration } = run.status ?? {};
  terminal.detail(`session     s3://${aws.bucket}/sessions/${session}/ at ${aws.endpoint}`);
  terminal.detail(`transcript  s3://${aws.bucket}/${transcript?.key} (${transcript?.bytes} bytes)`);
  terminal.detail(
    `run         ${iterations} model calls, ${toolCalls} tool calls, ${duration}; messages left in the queue: ${aws.messagesLeft()}`,
  );
}

async function eventsOf(cluster: DemoCluster, run: AgentRun): Promise<string> {
  const text = await cluster.kubectl([
    'describe',
    'agentrun',
    run.metadata.name ?? '',
    '-n',
    namespaces.agents,
  ]);
  return text.slice(text.indexOf('Events:')).split('\n').slice(1).join('\n');
}

async function keepRunning(cluster: DemoCluster, scene: DemoScene, operator: OperatorProcess): Promise<void> {
  const samples = [
    cluster.howToUse,
    `kubectl get agentruns,agentsessions,agentworkflows -n ${namespaces.agents}`,
    `kubectl get sandboxpools,pods -n ${namespaces.sandboxes}`,
    "kubectl create -f - <<'EOF'   # another run, by hand",
    'apiVersion: hummingbird.dev/v1alpha1',
    'kind: AgentRun',
    `metadata: {generateName: by-hand-, namespace: ${namespaces.agents}}`,
    `spec: {workflowRef: {name: analyze-failures}, mergeRequest: {project: ${scene.projectPath}, iid: ${scene.mergeRequest.iid}}}`,
    'EOF',
  ].join('\n');
  terminal.block('Left running; in another terminal', samples);
  terminal.detail(`operator: pid ${operator.pid}, log ${operator.logFile}, ${operator.healthUrl}/metrics`);
  terminal.detail('Ctrl-C ends it and cleans up.');
  await new Promise(() => setInterval(() => undefined, 60_000));
}

/** Last made, first removed; everything is tried, whatever fails. */
function cleanUp(): Promise<void> {
  cleaning ??= (async () => {
    if (cleanups.length > 0) terminal.step('Cleaning up');
    for (const { what, run } of cleanups.reverse())
      await run().catch((error: unknown) => console.error(`${what} was not cleaned up: ${String(error)}`));
  })();
  return cleaning;
}

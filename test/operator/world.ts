import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Cluster } from '../../hack/cluster/cluster.ts';
import {
  apply,
  installDefinitions,
  installNamespaces,
  type Namespaces,
  uninstall,
} from '../../hack/operator/install.ts';
import { pool, run, tokenSecret, workflow } from '../../hack/operator/objects.ts';
import {
  type OperatorProcess,
  type OperatorProcessOptions,
  startOperatorProcess,
} from '../../hack/operator/process.ts';
import type { AgentRun } from '../../src/crds/agent-run.ts';
import { ACCESS, type FakeGitLab, startGitLab } from '../fakes/gitlab/index.ts';
import type { FakeMergeRequest, FakeProject } from '../fakes/gitlab/state.ts';
import { type OpenAiServer, type Script, startOpenAi } from '../fakes/openai/server.ts';

export const PROJECT = 'group/app';
export const SANDBOX_IMAGE = 'hummingbird.test/sandbox:1';
export const MODEL_KEY = 'sk-canary-model-key-0001';

export interface WorldOptions {
  /** The workflow's model, by name; the first one is the workflow's. */
  readonly scripts: Readonly<Record<string, Script>>;
  readonly replicas?: number;
  /** Laid over the pool's spec. */
  readonly poolSpec?: object;
  /** Off when left out: a proof takes 5 s. */
  readonly egressProbe?: boolean;
  readonly workflowSpec?: object;
  /** Changes what the operator is started with: fault proxies in front of what it talks to, say. */
  readonly operator?: (base: OperatorProcessOptions) => Promise<Partial<OperatorProcessOptions>>;
}

/** Everything around one operator, in namespaces of its own: what a test changes is its own. */
export interface World {
  readonly cluster: Cluster;
  readonly namespaces: Namespaces;
  readonly gitlab: FakeGitLab;
  readonly project: FakeProject;
  readonly mergeRequest: FakeMergeRequest;
  readonly openai: OpenAiServer;
  readonly storeDir: string;
  readonly operator: OperatorProcess;
  readonly tokens: {
    readonly orchestrator: string;
    readonly action: string;
    readonly tool: string;
    readonly model: string;
  };
  /** Starts another operator process; `operator` is then that one. */
  restart(changes?: Partial<OperatorProcessOptions>): Promise<OperatorProcess>;
  startRun(name: string, spec?: object): Promise<void>;
  getRun(name: string): Promise<AgentRun>;
  /** Polls until the predicate holds; rejects with the run and the operator's log when it does not in time. */
  waitRun(
    name: string,
    what: string,
    predicate: (run: AgentRun) => boolean,
    timeoutMs?: number,
  ): Promise<AgentRun>;
  waitEnd(name: string, timeoutMs?: number): Promise<AgentRun>;
  /** Polls until it holds; rejects with the operator's log when it does not in time. */
  waitUntil(what: string, holds: () => boolean | Promise<boolean>): Promise<void>;
  /** Bodies of the bot's notes on the merge request. */
  notes(): readonly string[];
  /** Names of pods that carry the run's uid. */
  podsOf(run: AgentRun): Promise<readonly string[]>;
  events(name: string): Promise<readonly string[]>;
  kubectl(args: readonly string[], stdin?: string): Promise<string>;
  close(): Promise<void>;
}

/** Two cores that others use as well, and a message that failed once comes again after half a minute. */
const PATIENCE_MS = 180_000;

let count = 0;

export async function aWorld(cluster: Cluster, options: WorldOptions): Promise<World> {
  count += 1;
  const id = `${process.pid}-${count}-${Date.now().toString(36)}`;
  const namespaces = { agents: `a-${id}`, sandboxes: `s-${id}` };
  const [gitlab, openai, storeDir] = await Promise.all([
    startGitLab({}),
    startOpenAi({ scripts: options.scripts, apiKey: MODEL_KEY }),
    mkdtemp(join(tmpdir(), 'hummingbird-store-')),
  ]);
  const { project, mergeRequest, tokens } = scene(gitlab);
  await installDefinitions(cluster);
  await installNamespaces(cluster, namespaces);
  await apply(
    cluster,
    tokenSecret(namespaces.agents, 'gitlab-action', 'action', tokens.action),
    tokenSecret(namespaces.agents, 'gitlab-read', 'tool', tokens.tool),
    tokenSecret(namespaces.agents, 'model-key', 'model', MODEL_KEY),
    pool(namespaces, {
      ...{ image: SANDBOX_IMAGE, replicas: options.replicas ?? 1 },
      egressProbe: options.egressProbe ?? false,
      spec: options.poolSpec,
    }),
    workflow(namespaces, {
      project: PROJECT,
      model: { name: Object.keys(options.scripts)[0] ?? 'none', baseURL: openai.url },
      spec: { limits: { timeout: '5m' }, ...options.workflowSpec },
    }),
  );
  const plain: OperatorProcessOptions = {
    kubeconfigPath: await cluster.kubeconfigFor(namespaces.agents, 'hummingbird-operator'),
    namespaces,
    gitlabUrl: gitlab.url,
    secrets: { orchestratorToken: tokens.orchestrator, markerKeys: `k1:${'ab'.repeat(32)}` },
    store: { folder: storeDir },
    logFile: join(storeDir, 'operator.log'),
  };
  const base = { ...plain, ...(await options.operator?.(plain)) };
  let operator = await startOperatorProcess(base);

  const lastWords = () => operator.log().split('\n').slice(-40).join('\n');

  const world: World = {
    cluster,
    namespaces,
    gitlab,
    project,
    mergeRequest,
    openai,
    storeDir,
    tokens: { ...tokens, model: MODEL_KEY },
    get operator() {
      return operator;
    },
    async restart(changes = {}) {
      operator = await startOperatorProcess({ ...base, ...changes });
      return operator;
    },
    async startRun(name, spec = {}) {
      await apply(cluster, run(namespaces, { name, project: PROJECT, iid: mergeRequest.iid, spec }));
    },
    getRun: async (name) =>
      JSON.parse(await cluster.kubectl(['get', 'agentrun', name, '-n', namespaces.agents, '-o', 'json'])),
    async waitRun(name, what, predicate, timeoutMs = PATIENCE_MS) {
      const deadline = Date.now() + timeoutMs;
      for (;;) {
        const found = await world.getRun(name);
        if (predicate(found)) return found;
        if (Date.now() > deadline)
          throw new Error(
            `AgentRun ${name}: ${what} not within ${timeoutMs} ms\n${JSON.stringify(found.status, null, 1)}\n${lastWords()}`,
          );
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    },
    waitEnd: (name, timeoutMs) =>
      world.waitRun(name, 'end', (found) => found.status?.completionTime !== undefined, timeoutMs),
    async waitUntil(what, holds) {
      const deadline = Date.now() + PATIENCE_MS;
      while (!(await holds())) {
        if (Date.now() > deadline) throw new Error(`${what}: not within ${PATIENCE_MS} ms\n${lastWords()}`);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    },
    notes: () =>
      mergeRequest.discussions.flatMap(({ notes }) =>
        notes.filter(({ author }) => author.bot).map(({ body }) => body),
      ),
    async podsOf({ metadata }) {
      const selector = `hummingbird.dev/run=${metadata.uid}`;
      const names = await cluster.kubectl([
        'get',
        'pods',
        '-n',
        namespaces.sandboxes,
        '-l',
        selector,
        '-o',
        'name',
      ]);
      return names.split('\n').filter((name) => name !== '');
    },
    async events(name) {
      const text = await cluster.kubectl([
        ...['get', 'events', '-n', namespaces.agents, '--field-selector', `involvedObject.name=${name}`],
        ...['-o', 'jsonpath={range .items[*]}{.reason}{"\\n"}{end}'],
      ]);
      return text.split('\n').filter((reason) => reason !== '');
    },
    kubectl: (args, stdin) => cluster.kubectl(args, stdin),
    async close() {
      await operator.stop('SIGKILL');
      await Promise.all([gitlab.stop(), openai.stop()]);
      // Finalizers have nobody left to remove them.
      await releaseFinalizers(cluster, namespaces);
      await uninstall(cluster, namespaces);
      await rm(storeDir, { recursive: true, force: true });
    },
  };
  return world;
}

function scene(gitlab: FakeGitLab) {
  const { state } = gitlab;
  const project = state.project({ path: PROJECT });
  const ada = state.user({ username: 'ada' });
  state.member(project, ada, ACCESS.developer);
  const mergeRequest = state.mergeRequest(project, {
    author: ada,
    title: 'Add a cache',
    diffs: [
      state.diff({ newPath: 'src/cache.ts', diff: '@@ -0,0 +1 @@\n+export const cache = new Map();\n' }),
    ],
  });
  const pipeline = state.pipeline(project, { user: ada, mergeRequest });
  state.job(pipeline, {
    name: 'unit-tests',
    trace: 'FAIL cache is empty after clear\nERROR: Job failed: exit code 1\n',
  });
  const operatorUser = state.user({ username: 'operator', bot: true });
  state.member(project, operatorUser, ACCESS.developer);
  return {
    project,
    mergeRequest,
    tokens: {
      orchestrator: state.token({ user: operatorUser }),
      action: state.projectBot(project, { name: 'analyze-failures' }).token,
      tool: state.projectBot(project, { name: 'reader', level: ACCESS.reporter, scopes: ['read_api'] }).token,
    },
  };
}

async function releaseFinalizers(cluster: Cluster, namespaces: Namespaces): Promise<void> {
  for (const kind of ['agentruns', 'agentsessions']) {
    const names = await cluster.kubectl(['get', kind, '-n', namespaces.agents, '-o', 'name']);
    for (const name of names.split('\n').filter((one) => one !== ''))
      await cluster.kubectl([
        'patch',
        name,
        '-n',
        namespaces.agents,
        '--type=merge',
        '-p',
        '{"metadata":{"finalizers":[]}}',
      ]);
  }
}

import { startFauxqs } from 'fauxqs';
import { Registry } from 'prom-client';
import type { Cluster } from '../hack/cluster/cluster.ts';
import {
  apply,
  installDefinitions,
  installNamespaces,
  type Namespaces,
  uninstall,
} from '../hack/operator/install.ts';
import { workflow } from '../hack/operator/objects.ts';
import { handleMessage } from '../src/bridge/handle.ts';
import { bridgeMetrics } from '../src/bridge/metrics.ts';
import { trackOutage } from '../src/bridge/outage.ts';
import { queueHealth } from '../src/bridge/queue/health.ts';
import { queueMetrics } from '../src/bridge/queue/metrics.ts';
import { runRouter } from '../src/bridge/queue/router.ts';
import { sqsQueue } from '../src/bridge/queue/sqs.ts';
import { runWorker } from '../src/bridge/queue/worker.ts';
import { AGENT_RUNS, type AgentRun } from '../src/crds/agent-run.ts';
import { AGENT_WORKFLOWS, type AgentWorkflow } from '../src/crds/agent-workflow.ts';
import { createClient } from '../src/kube/client.ts';
import { systemClock } from '../src/kube/clock.ts';
import { connect } from '../src/kube/config.ts';
import { createEventRecorder } from '../src/kube/events.ts';
import { exclusiveWork } from '../src/kube/exclusive.ts';
import { silentLogger } from '../src/kube/log.ts';
import type { KubeClient } from '../src/kube/port.ts';
import { createTransport } from '../src/kube/transport.ts';
import { bridgeGitLab } from '../test/bridge/gitlab.ts';
import type { FakeDiscussion } from '../test/fakes/gitlab/state.ts';
import { noteHook } from '../test/fakes/gitlab/webhooks.ts';
import { publishToTopic } from '../test/fakes/sns-publish.ts';
import { type Rows, rounded } from './row.ts';

const EVENTS = 1_000;
const DISCUSSIONS = 50;
const PROJECT = 'group/app';

/**
 * 1,000 commands that lie in the standard queue, 20 in each of 50 discussions, through router, FIFO queue and worker to
 * AgentRuns on a real API server, which nobody works on. Lost is what has no run, and what overtook another of its
 * discussion. The emulator of SQS and the GitLab stand-in share the process, so the real thing is no slower for our part.
 */
export async function burstBench(cluster: Cluster): Promise<Rows> {
  const id = `${process.pid}-${Date.now().toString(36)}`;
  const namespaces = { agents: `a-${id}`, sandboxes: `s-${id}` };
  const transport = createTransport(connect({ kind: 'Files', paths: [cluster.kubeconfigPath] }));
  const kube = createClient(transport);
  const aws = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });
  const gitlab = await bridgeGitLab();
  try {
    await installDefinitions(cluster);
    await installNamespaces(cluster, namespaces);
    const made = workflow(namespaces, {
      project: PROJECT,
      model: { name: 'none', baseURL: 'http://127.0.0.1:1/v1' },
    });
    await apply(cluster, made);
    const { items: workflows } = await kube.list(AGENT_WORKFLOWS, { namespace: namespaces.agents });
    const discussionOf = await fillQueue(aws, gitlab);
    const { ms, created } = await drain({ kube, workflows, aws, gitlab, namespaces });
    const runs = (await kube.list(AGENT_RUNS, { namespace: namespaces.agents })).items;
    const lost = EVENTS - runs.length + overtaken(created, discussionOf);
    return {
      'burst.eventsPerSecond': {
        ...{ value: rounded(EVENTS / (ms / 1000)), goal: 50, better: 'higher', unit: '1/s', runs: EVENTS },
      },
      'burst.lost': { value: lost, goal: 0, better: 'lower', unit: 'events', runs: EVENTS },
    };
  } finally {
    await gitlab.close();
    await aws.stop();
    await uninstall(cluster, namespaces);
    await transport.close();
  }
}

type Aws = Awaited<ReturnType<typeof startFauxqs>>;
type GitLab = Awaited<ReturnType<typeof bridgeGitLab>>;

/** Notes of all discussions mixed, as they come when many people write at once; returns each one's discussion. */
async function fillQueue(
  aws: Aws,
  { gitlab, alice, aProject }: GitLab,
): Promise<ReadonlyMap<number, string>> {
  const { mergeRequest } = aProject(PROJECT);
  aws.createQueue('burst');
  aws.createQueue('burst.fifo', { attributes: { FifoQueue: 'true' } });
  const { topicArn } = aws.createTopic('burst');
  aws.subscribe({ topic: 'burst', queue: 'burst' });
  const discussions: FakeDiscussion[] = [];
  const discussionOf = new Map<number, string>();
  for (let at = 0; at < EVENTS; at += 1) {
    const discussion = discussions[at % DISCUSSIONS];
    const said = gitlab.state.note(mergeRequest, {
      author: alice,
      body: `/hummingbird analyze-failures and think of number ${at}`,
      ...(discussion === undefined ? {} : { discussion }),
    });
    if (discussion === undefined) discussions.push(said.discussion);
    discussionOf.set(said.note.id, said.discussion.id);
    const hook = JSON.stringify(noteHook(gitlab.url, mergeRequest, said));
    await publishToTopic(aws.address, topicArn, hook, { source: 'gitlab', event_type: 'note' });
  }
  return discussionOf;
}

interface Drain {
  readonly kube: KubeClient;
  readonly workflows: readonly AgentWorkflow[];
  readonly aws: Aws;
  readonly gitlab: GitLab;
  readonly namespaces: Namespaces;
}

/** Until both queues are empty: how long that took, and the runs in the order in which the API server took them. */
async function drain({ kube, workflows, aws, gitlab, namespaces }: Drain) {
  const created: AgentRun[] = [];
  const recording: KubeClient = {
    ...kube,
    async create(kind, object, options) {
      const made = await kube.create(kind, object, options);
      if (kind.kind === AGENT_RUNS.kind) created.push(made as unknown as AgentRun);
      return made;
    },
  };
  const events = createEventRecorder({ client: kube, component: 'bench', instance: 'bench' });
  const registry = new Registry();
  const parts = {
    ...{ kube: recording, events, gitlab: gitlab.parts, namespace: namespaces.agents },
    workflows: () => workflows,
    runsOn: () => [],
    commandPrefix: '/hummingbird',
    metrics: { ...bridgeMetrics(registry), ...queueMetrics(registry) },
    health: queueHealth(systemClock),
    logger: silentLogger,
    clock: systemClock,
    random: Math.random,
    exclusively: exclusiveWork({
      ...{ client: recording, namespace: namespaces.agents, clock: systemClock, holder: 'bench' },
      isAlive: async () => true,
    }),
    // The emulator lets an abandoned poll live on.
    waitSeconds: 1,
  };
  const open = (name: string) =>
    sqsQueue({
      queueUrl: aws.inspectQueue(name)?.url ?? '',
      region: 'us-east-1',
      endpoint: aws.address,
      credentials: { accessKeyId: 'bench', secretAccessKey: 'bench' },
    });
  const ingress = open('burst');
  const fifo = open('burst.fifo');
  const stop = new AbortController();
  const before = performance.now();
  const loops = [
    runRouter({ ...parts, ingress, fifo }, stop.signal),
    runWorker(
      {
        ...parts,
        queue: fifo,
        handle: (message, signal) => handleMessage(parts, message, signal),
        outage: trackOutage(parts),
        ready: () => true,
      },
      stop.signal,
    ),
  ];
  while (left(aws, 'burst') + left(aws, 'burst.fifo') > 0)
    await new Promise((resolve) => setTimeout(resolve, 50));
  const ms = performance.now() - before;
  stop.abort(new Error('all is done'));
  await Promise.all(loops);
  await events.flush();
  ingress.close();
  fifo.close();
  return { ms, created };
}

function left(aws: Aws, queue: string): number {
  const messages = aws.inspectQueue(queue)?.messages;
  return messages === undefined ? 0 : messages.ready.length + messages.inflight.length;
}

/** Runs whose note is older than that of a run made before it in the same discussion. */
function overtaken(created: readonly AgentRun[], discussionOf: ReadonlyMap<number, string>): number {
  const newest = new Map<string, number>();
  let count = 0;
  for (const { spec } of created) {
    const { noteId = 0 } = spec.trigger;
    const discussion = discussionOf.get(noteId) ?? '';
    const before = newest.get(discussion) ?? 0;
    if (noteId < before) count += 1;
    newest.set(discussion, Math.max(noteId, before));
  }
  return count;
}

import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { type FauxqsServer, startFauxqs } from 'fauxqs';
import { Registry } from 'prom-client';
import { type HandleDependencies, handleMessage } from '../../src/bridge/handle.ts';
import { bridgeMetrics } from '../../src/bridge/metrics.ts';
import { trackOutage } from '../../src/bridge/outage.ts';
import type { Queue } from '../../src/bridge/port.ts';
import { queueHealth } from '../../src/bridge/queue/health.ts';
import { queueMetrics } from '../../src/bridge/queue/metrics.ts';
import { sqsQueue } from '../../src/bridge/queue/sqs.ts';
import { runWorker, type WorkerDependencies } from '../../src/bridge/queue/worker.ts';
import { AGENT_RUNS, type AgentRun } from '../../src/crds/agent-run.ts';
import { AGENT_WORKFLOWS, type AgentWorkflow } from '../../src/crds/agent-workflow.ts';
import { systemClock } from '../../src/kube/clock.ts';
import { exclusiveWork } from '../../src/kube/exclusive.ts';
import type { Informer } from '../../src/kube/informer.ts';
import { silentLogger } from '../../src/kube/log.ts';
import {
  type KubeAccess,
  kubeAccess,
  type TwoNamespaces,
  twoNamespaces,
  unique,
} from '../builders/kube-access.ts';
import { until } from '../builders/pool.ts';
import type { FakeMergeRequest, FakeUser } from '../fakes/gitlab/state.ts';
import { publishToTopic } from '../fakes/sns-publish.ts';
import { type BridgeGitLabWorld, bridgeGitLab } from './gitlab.ts';

const REGION = 'us-east-1';
const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };

/** The API server with a workflow in it, and an emulator of SNS and SQS (fauxqs) in this process. */
export interface BridgeWorld extends KubeAccess {
  readonly namespaces: TwoNamespaces;
  readonly workflows: Informer<AgentWorkflow>;
  readonly runs: Informer<AgentRun>;
  readonly gitlab: BridgeGitLabWorld;
  /** A queue of the test's own, with a dead-letter queue and a topic that feeds it. */
  aQueue(options?: {
    readonly maxReceiveCount?: number;
    readonly visibilitySeconds?: number;
    readonly raw?: boolean;
  }): TestQueue;
  /** A workflow on a project of its own, with a merge request by Alice. Its trigger is Pipeline, or those named. */
  aWorkflow(triggers?: readonly ('Pipeline' | 'MergeRequest')[]): Promise<ServedProject>;
  runsOf(workflow: string): Promise<readonly AgentRun[]>;
}

export interface ServedProject {
  readonly name: string;
  readonly project: string;
  readonly mergeRequest: FakeMergeRequest;
  readonly bot: FakeUser;
}

export interface TestQueue {
  readonly queue: Queue;
  /** Through SNS, as forwarders do. */
  publish(message: string, attributes: Readonly<Record<string, string>>): Promise<void>;
  /** Straight into SQS. */
  send(body: string, attributes?: Readonly<Record<string, string>>): Promise<void>;
  /** Messages that wait, those in somebody's hands included. */
  left(): number;
  dead(): readonly string[];
}

export async function bridgeWorld(): Promise<BridgeWorld> {
  const access = await kubeAccess();
  const namespaces = await twoNamespaces();
  const workflows = await access.informer(AGENT_WORKFLOWS, namespaces.agents);
  const runs = await access.informer(AGENT_RUNS, namespaces.agents);
  const gitlab = await bridgeGitLab();
  const server = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });
  const client = new SQSClient({ endpoint: server.address, region: REGION, credentials });
  const queues: { close(): void }[] = [];
  return {
    ...access,
    namespaces,
    workflows,
    runs,
    gitlab,
    aQueue(options = {}) {
      const made = makeQueue(server, client, options);
      queues.push(made.queue);
      return made;
    },
    async aWorkflow(triggers = ['Pipeline']) {
      const name = unique('analyze');
      const namespace = namespaces.agents;
      const project = `group/${name}`;
      const { mergeRequest, bot } = gitlab.aProject(project);
      await access.kube.create(AGENT_WORKFLOWS, workflowOn(name, namespace, project, triggers));
      // As the workflow controller finds it out.
      const status = { projects: [{ path: project, botUserId: bot.id, ready: true }] };
      const patch = { type: 'merge', body: { status } } as const;
      await access.kube.patch(AGENT_WORKFLOWS, { namespace, name }, patch, { subresource: 'status' });
      await until(
        'the informer knows the bot',
        () => workflows.get(`${namespace}/${name}`)?.status?.projects,
      );
      return { name, project, mergeRequest, bot };
    },
    async runsOf(workflow) {
      const labelSelector = `hummingbird.dev/workflow=${workflow}`;
      return (await access.kube.list(AGENT_RUNS, { namespace: namespaces.agents, labelSelector })).items;
    },
    async close() {
      for (const queue of queues) queue.close();
      client.destroy();
      await server.stop();
      await gitlab.close();
      await namespaces.remove();
      await access.close();
    },
  };
}

export interface RunningWorker {
  readonly registry: Registry;
  /** Value of a counter with this label. */
  count(metric: string, label: string): Promise<number>;
  /** Resolves when the worker has ended. */
  stop(): Promise<void>;
}

/** A bridge at work; stopped by the test. */
export function aWorker(
  world: BridgeWorld,
  queue: Queue,
  overrides: Partial<WorkerDependencies & HandleDependencies> = {},
): RunningWorker {
  const registry = new Registry();
  const stop = new AbortController();
  const parts = {
    kube: world.kube,
    events: world.events,
    workflows: () => world.workflows.list(),
    runsOn: (project: string, iid: number) =>
      world.runs.list(({ spec }) => spec.mergeRequest.project === project && spec.mergeRequest.iid === iid),
    gitlab: world.gitlab.parts,
    commandPrefix: '/hummingbird',
    metrics: { ...bridgeMetrics(registry), ...queueMetrics(registry) },
    health: queueHealth(systemClock),
    logger: silentLogger,
    clock: systemClock,
    random: Math.random,
    exclusively: exclusiveWork({
      ...{ client: world.kube, namespace: world.namespaces.agents, clock: systemClock },
      holder: unique('worker'),
      isAlive: async () => true,
    }),
    namespace: world.namespaces.agents,
    ...overrides,
  };
  const done = runWorker(
    {
      queue,
      handle: (message, signal) => handleMessage(parts, message, signal),
      outage: trackOutage(parts),
      ready: () => parts.workflows() !== undefined,
      ...parts,
    },
    stop.signal,
  );
  return {
    registry,
    async count(metric, label) {
      const found = await registry.getSingleMetric(`hummingbird_bridge_${metric}_total`)?.get();
      return found?.values.find(({ labels }) => Object.values(labels).includes(label))?.value ?? 0;
    },
    stop() {
      stop.abort();
      return done;
    },
  };
}

function makeQueue(
  server: FauxqsServer,
  client: SQSClient,
  options: { readonly maxReceiveCount?: number; readonly visibilitySeconds?: number; readonly raw?: boolean },
): TestQueue & { readonly queue: Queue & { close(): void } } {
  const { maxReceiveCount = 5, visibilitySeconds = 1, raw = false } = options;
  const name = unique('events');
  const dead = server.createQueue(`${name}-dead`);
  const { queueUrl } = server.createQueue(name, {
    attributes: {
      VisibilityTimeout: String(visibilitySeconds),
      RedrivePolicy: JSON.stringify({
        deadLetterTargetArn: dead.queueArn,
        maxReceiveCount: String(maxReceiveCount),
      }),
    },
  });
  const { topicArn } = server.createTopic(name);
  server.subscribe({
    topic: name,
    queue: name,
    ...(raw ? { attributes: { RawMessageDelivery: 'true' } } : {}),
  });
  const bodies = (queueName: string): readonly string[] => {
    const messages = server.inspectQueue(queueName)?.messages;
    if (messages === undefined) return [];
    const waiting = [
      ...messages.ready,
      ...messages.delayed,
      ...messages.inflight.map(({ message }) => message),
    ];
    return waiting.map(({ body }) => body);
  };
  return {
    queue: sqsQueue({ queueUrl, region: REGION, endpoint: server.address, credentials }),
    publish: (message, attributes) => publishToTopic(server.address, topicArn, message, attributes),
    async send(body, attributes = {}) {
      const entries = Object.entries(attributes).map(([key, value]) => [
        key,
        { DataType: 'String', StringValue: value },
      ]);
      const command = new SendMessageCommand({
        QueueUrl: queueUrl,
        MessageBody: body,
        MessageAttributes: Object.fromEntries(entries),
      });
      await client.send(command);
    },
    left: () => bodies(name).length,
    dead: () => bodies(`${name}-dead`),
  };
}

function workflowOn(
  name: string,
  namespace: string,
  project: string,
  triggers: readonly ('Pipeline' | 'MergeRequest')[],
): AgentWorkflow {
  const spec = {
    prompt: { text: 'Explain the failure.' },
    triggers: triggers.map((event) => ({ event, ignoreUsers: [], ignoreBranches: [] })),
    concurrency: 'Supersede' as const,
    model: { name: 'demo-script', provider: 'OpenAICompatible' as const, baseURL: 'http://127.0.0.1:1/v1' },
    sandbox: { none: true as const },
    publish: { kind: 'None' as const, internal: true, progress: false },
    projects: [{ path: project }],
  };
  // The API server fills in what is left out.
  return {
    apiVersion: 'hummingbird.dev/v1alpha1',
    kind: 'AgentWorkflow',
    metadata: { name, namespace },
    spec,
  } as unknown as AgentWorkflow;
}

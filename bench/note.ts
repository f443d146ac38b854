import { startFauxqs } from 'fauxqs';
import type { Cluster } from '../hack/cluster/cluster.ts';
import type { FakeMergeRequest, FakeUser } from '../test/fakes/gitlab/state.ts';
import { noteHook } from '../test/fakes/gitlab/webhooks.ts';
import { publishToTopic } from '../test/fakes/sns-publish.ts';
import { aWorld, type World } from '../test/operator/world.ts';
import { percentile, type Rows, rounded } from './row.ts';

const NOTES = 40;
/** What a call to GitLab takes; the stand-in alone would answer at once. */
const GITLAB_MS = 20;
const PATIENCE_MS = 60_000;

/**
 * From the moment before a webhook is published until the placeholder note stands in GitLab, through SNS, router, FIFO
 * queue and worker of the operator as a process of its own. Each is a command on a merge request of its own, after the run
 * before has ended.
 */
export async function noteBench(cluster: Cluster): Promise<Rows> {
  const aws = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });
  const { queueUrl } = aws.createQueue('events');
  const fifo = aws.createQueue('events.fifo', { attributes: { FifoQueue: 'true' } });
  const { topicArn } = aws.createTopic('webhooks');
  aws.subscribe({ topic: 'webhooks', queue: 'events' });
  const world = await aWorld(cluster, {
    scripts: { 'bench-script': () => ({ text: 'Nothing to see.' }) },
    workflowSpec: { sandbox: { none: true } },
    operator: async () => ({
      queue: { url: queueUrl, fifoUrl: fifo.queueUrl, endpoint: aws.address },
    }),
  });
  const samples: number[] = [];
  try {
    await world.operator.waitReady();
    await workflowReady(world);
    world.gitlab.faults.add({ path: /./, times: Number.POSITIVE_INFINITY, delayMs: GITLAB_MS });
    const ada = world.mergeRequest.author;
    for (let count = 0; count < NOTES; count += 1) {
      const mergeRequest = world.gitlab.state.mergeRequest(world.project, {
        author: ada,
        title: `Change ${count}`,
      });
      samples.push(
        await untilPlaceholder(mergeRequest, ada, world, (hook) =>
          publishToTopic(aws.address, topicArn, hook, { source: 'gitlab', event_type: 'note' }),
        ),
      );
      await runsEnded(world);
    }
  } finally {
    await world.close();
    await aws.stop();
  }
  const row = { better: 'lower', unit: 'ms', runs: NOTES, note: `GitLab at ${GITLAB_MS} ms a call` } as const;
  return {
    'note.p50ms': { ...row, value: rounded(percentile(samples, 0.5)), goal: 1_000 },
    'note.p95ms': { ...row, value: rounded(percentile(samples, 0.95)), goal: 1_000 },
  };
}

async function workflowReady({ kubectl, namespaces }: World): Promise<void> {
  const args = ['wait', '-n', namespaces.agents, '--for=condition=Ready', '--timeout=60s'];
  await kubectl([...args, 'agentworkflow/analyze-failures']);
}

async function untilPlaceholder(
  mergeRequest: FakeMergeRequest,
  author: FakeUser,
  { gitlab, operator }: World,
  publish: (hook: string) => Promise<void>,
): Promise<number> {
  const said = gitlab.state.note(mergeRequest, { author, body: '/hummingbird analyze-failures' });
  const hook = JSON.stringify(noteHook(gitlab.url, mergeRequest, said));
  const before = performance.now();
  await publish(hook);
  const byBot = () => mergeRequest.discussions.some(({ notes }) => notes.some((note) => note.author.bot));
  while (!byBot()) {
    if (performance.now() - before > PATIENCE_MS)
      throw new Error(
        `no note within ${PATIENCE_MS} ms:\n${operator.log().split('\n').slice(-15).join('\n')}`,
      );
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  return performance.now() - before;
}

async function runsEnded({ kubectl, namespaces }: World): Promise<void> {
  const args = [
    'get',
    'agentruns',
    '-n',
    namespaces.agents,
    '-o',
    'jsonpath={range .items[*]}{.status.completionTime}{";"}{end}',
  ];
  while (
    (await kubectl(args))
      .split(';')
      .slice(0, -1)
      .some((time) => time === '')
  )
    await new Promise((resolve) => setTimeout(resolve, 100));
}

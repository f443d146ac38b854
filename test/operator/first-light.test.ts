import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type FauxqsServer, startFauxqs } from 'fauxqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { apply } from '../../hack/operator/install.ts';
import { AgentRunSpec } from '../../src/crds/agent-run.ts';
import { sharedCluster } from '../cluster/shared.ts';
import type { FakeMergeRequest } from '../fakes/gitlab/state.ts';
import { pipelineHook } from '../fakes/gitlab/webhooks.ts';
import { publishToTopic } from '../fakes/sns-publish.ts';
import { aWorld, PROJECT, type World } from './world.ts';

/** Tool calls and results as the model saw them. */
const script = ({
  messages,
}: {
  readonly messages: readonly { readonly role: string; readonly content?: unknown }[];
}) => {
  const slow = messages.some(
    ({ content }) => typeof content === 'string' && content.includes('take your time'),
  );
  if (slow)
    return {
      toolCalls: [{ name: 'sandbox_exec', args: { command: 'echo begun > /tmp/data/begun; sleep 300' } }],
    };
  if (messages.some(({ role }) => role === 'tool')) return { text: 'The cache is not emptied.' };
  return {
    toolCalls: [
      { name: 'gitlab_get_mr_details', args: { project: PROJECT, iid: 1 } },
      { name: 'sandbox_exec', args: { command: 'echo from the sandbox' } },
    ],
  };
};

describe('first light', () => {
  let world: World;
  let aws: FauxqsServer;
  let topicArn: string;

  beforeAll(async () => {
    aws = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });
    const { queueUrl } = aws.createQueue('events');
    const fifo = aws.createQueue('events.fifo', { attributes: { FifoQueue: 'true' } });
    topicArn = aws.createTopic('webhooks').topicArn;
    aws.subscribe({ topic: 'webhooks', queue: 'events' });
    aws.createBucket('sessions');
    world = await aWorld(await sharedCluster(), {
      replicas: 2,
      egressProbe: true,
      scripts: { 'test-script': script },
      operator: async () => ({
        queue: { url: queueUrl, fifoUrl: fifo.queueUrl, endpoint: aws.address },
        store: { bucket: 'sessions', endpoint: aws.address },
      }),
    });
    await world.operator.waitReady();
    // By the operator's own rights, and on a machine that may be busy with other tests.
    const { sandboxes } = world.namespaces;
    for (const wait of ['--for=condition=EgressBlocked', '--for=jsonpath={.status.ready}=2'])
      await world.kubectl(['wait', 'spool/analysis', '-n', sandboxes, wait, '--timeout=240s']);
  }, 600_000);
  afterAll(async () => {
    await world?.close();
    await aws?.stop();
  });

  const waiting = (queue: string) => {
    const messages = aws.inspectQueue(queue)?.messages;
    return messages === undefined ? 0 : messages.ready.length + messages.inflight.length;
  };

  it('turns a failed pipeline, told five times, into one run, one note and a session', async () => {
    const pipeline = world.project.pipelines[0];
    if (pipeline === undefined) throw new Error('the scene has a pipeline');
    const webhook = JSON.stringify(pipelineHook(world.gitlab.url, pipeline));
    for (let count = 0; count < 5; count += 1)
      await publishToTopic(aws.address, topicArn, webhook, { source: 'gitlab', event_type: 'pipeline' });
    // Something that nobody can read stays, and holds up nobody.
    await publishToTopic(aws.address, topicArn, 'hello', { source: 'gitlab', event_type: 'pipeline' });

    const names = async () =>
      (await world.kubectl(['get', 'agentruns', '-n', world.namespaces.agents, '-o', 'name'])).trim();
    await expect.poll(names, { timeout: 60_000 }).toMatch(/^agentrun\.hummingbird\.dev\/analyze-failures-/);
    const [name = ''] = (await names()).split('\n').map((full) => full.replace(/^.*\//, ''));
    const run = await world.waitEnd(name);

    expect(run.status).toMatchObject({
      phase: 'Succeeded',
      mergeRequest: `${PROJECT}!1`,
      sha: world.mergeRequest.sha,
      iterations: 2,
      toolCalls: 2,
      model: 'test-script',
      note: { noteId: expect.any(Number), url: expect.stringContaining('#note_') },
      sandbox: { kind: 'PodPool', namespace: world.namespaces.sandboxes },
      usage: { input: expect.any(Number), output: expect.any(Number) },
      transcript: { key: `sessions/${run.metadata.uid}/transcript.md` },
    });
    // demo-script and its kind have no price: unknown is absent, never 0.
    expect(run.status?.costUSD).toBeUndefined();
    const conditions = Object.fromEntries(
      (run.status?.conditions ?? []).map(({ type, status }) => [type, status]),
    );
    expect(conditions).toEqual({
      Admitted: 'True',
      NotePosted: 'True',
      SandboxReady: 'False',
      SessionSaved: 'True',
      Succeeded: 'True',
    });

    await expect.poll(() => [waiting('events'), waiting('events.fifo')], { timeout: 60_000 }).toEqual([0, 1]);
    const metrics = await (await fetch(`${world.operator.healthUrl}/metrics`)).text();
    const forwarded =
      /^hummingbird_router_messages_total\{kind="pipeline",outcome="forwarded"\} (\d+)$/m.exec(metrics);
    expect(Number(forwarded?.[1])).toBeGreaterThanOrEqual(6);
    expect(await (await fetch(`${world.operator.healthUrl}/readyz`)).text()).toMatch(
      /^queue: ok\nrouter: ok$/m,
    );
    expect((await names()).split('\n')).toHaveLength(1);
    expect(world.notes()).toHaveLength(1);
    expect(world.notes()[0]).toContain('The cache is not emptied.');
    expect(await world.podsOf(run)).toEqual([]);

    const session = JSON.parse(
      await world.kubectl([
        'get',
        'agentsession',
        run.metadata.uid ?? '',
        '-n',
        world.namespaces.agents,
        '-o',
        'json',
      ]),
    );
    expect(session.status).toMatchObject({
      runs: 1,
      archive: { bytes: expect.any(Number) },
      workspace: { bytes: expect.any(Number) },
    });
    expect(session.spec.discussionId).toBe(run.status?.note?.discussionId);
  });

  it('runs what somebody applied, as kubectl users expect', async () => {
    const sample = parse(
      await readFile(fileURLToPath(new URL('../../config/samples/agentrun.yaml', import.meta.url)), 'utf8'),
    );
    AgentRunSpec.parse(sample.spec);
    await apply(world.cluster, {
      ...sample,
      metadata: { name: 'by-hand', namespace: world.namespaces.agents },
      spec: {
        ...sample.spec,
        workflowRef: { name: 'analyze-failures' },
        mergeRequest: { project: PROJECT, iid: 1 },
        publish: { kind: 'Note' },
      },
    });
    const { agents } = world.namespaces;
    await world.kubectl([
      'wait',
      '--for=condition=Succeeded',
      'agentrun/by-hand',
      '-n',
      agents,
      '--timeout=60s',
    ]);
    const table = await world.kubectl(['get', 'agentruns', 'by-hand', '-n', agents]);
    expect(table.split('\n')[0]?.trim().split(/\s+/)).toEqual([
      'NAME',
      'WORKFLOW',
      'MR',
      'PHASE',
      'REASON',
      'ITER',
      'COST',
      'NOTE',
      'AGE',
    ]);
    expect(table).toMatch(/by-hand\s+analyze-failures\s+group\/app!1\s+Succeeded\s+Succeeded\s+2/);
    const wide = await world.kubectl(['get', 'arun', 'by-hand', '-n', agents, '-o', 'wide']);
    for (const column of ['MODEL', 'SANDBOX', 'SESSION', 'SHA', 'DURATION']) expect(wide).toContain(column);
    const story = await world.kubectl(['describe', 'agentrun', 'by-hand', '-n', agents]);
    for (const reason of [
      'Admitted',
      'PlaceholderPosted',
      'SandboxClaimed',
      'LoopStarted',
      'NoteUpdated',
      'SessionSaved',
      'SandboxLingers',
      'Succeeded',
    ])
      expect(story).toContain(reason);
    const selected = await world.kubectl([
      'get',
      'arun',
      '-n',
      agents,
      '--field-selector',
      'status.phase=Succeeded',
      '-o',
      'name',
    ]);
    expect(selected).toContain('by-hand');
  });

  it('kills the command of a run that is cancelled, says so in its note, and gives the sandbox back', async () => {
    const { agents } = world.namespaces;
    const before = world.notes().length;
    await world.startRun('cancelled', { message: 'take your time' });
    await world.waitRun(
      'cancelled',
      'a tool call',
      ({ status }) => status?.phase === 'Running' && (status.iterations ?? 0) >= 1,
    );
    await world.kubectl([
      'patch',
      'agentrun',
      'cancelled',
      '-n',
      agents,
      '--type=merge',
      '-p',
      '{"spec":{"cancel":true}}',
    ]);
    const run = await world.waitEnd('cancelled');
    expect(run.status?.phase).toBe('Cancelled');
    const added = world.notes().slice(before);
    expect(added).toHaveLength(1);
    expect(added[0]).toContain('cancelled');
    expect(await world.podsOf(run)).toEqual([]);
  });

  it('BR-43: deleting a run in the middle removes its pod and no other, and nothing owns across namespaces', async () => {
    const { agents, sandboxes } = world.namespaces;
    await world.startRun('deleted', { message: 'take your time' });
    const run = await world.waitRun(
      'deleted',
      'a tool call',
      ({ status }) => status?.phase === 'Running' && (status.iterations ?? 0) >= 1,
    );
    const pods = JSON.parse(await world.kubectl(['get', 'pods', '-n', sandboxes, '-o', 'json']));
    const owners = pods.items.flatMap(
      (pod: { metadata: { ownerReferences?: { kind: string }[] } }) => pod.metadata.ownerReferences ?? [],
    );
    expect(owners.every(({ kind }: { kind: string }) => kind === 'ReplicaSet')).toBe(true);
    expect(await world.podsOf(run)).toHaveLength(1);
    await world.kubectl(['delete', 'agentrun', 'deleted', '-n', agents, '--timeout=60s']);
    expect(await world.podsOf(run)).toEqual([]);
    await expect
      .poll(
        () =>
          world.kubectl([
            'get',
            'sandboxpool',
            'analysis',
            '-n',
            sandboxes,
            '-o',
            'jsonpath={.status.ready}',
          ]),
        { timeout: 60_000 },
      )
      .toBe('2');
  });

  it('goes on with a run whose operator was killed, from its last checkpoint, with one note', async () => {
    const before = world.notes().length;
    const asked = world.openai.requests.length;
    await world.startRun('survives');
    await world.waitRun('survives', 'the loop', ({ status }) => status?.phase === 'Running');
    await world.operator.stop('SIGKILL');
    const meanwhile = await failedPipeline();
    await world.restart();
    const run = await world.waitEnd('survives');
    expect(run.status?.phase).toBe('Succeeded');
    expect(world.notes().slice(before)).toHaveLength(1);
    // Two calls make the analysis; a kill repeats one at the most.
    expect(world.openai.requests.length - asked).toBeLessThanOrEqual(3);
    expect(run.status?.holder?.epoch).toBe(2);
    // What came while nobody routed is routed by the next leader.
    const jsonpath = `{.items[?(@.spec.mergeRequest.iid==${meanwhile.iid})].metadata.name}`;
    const { agents } = world.namespaces;
    await expect
      .poll(() => world.kubectl(['get', 'agentruns', '-n', agents, '-o', `jsonpath=${jsonpath}`]), {
        timeout: 90_000,
      })
      .toMatch(/^analyze-failures-\w+$/);
  });

  /** On a merge request of its own, told to the topic. */
  async function failedPipeline(): Promise<FakeMergeRequest> {
    const { state, url } = world.gitlab;
    const { author } = world.mergeRequest;
    const mergeRequest = state.mergeRequest(world.project, { author, title: 'Empty the cache' });
    const pipeline = state.pipeline(world.project, { user: author, mergeRequest });
    const webhook = JSON.stringify(pipelineHook(url, pipeline));
    await publishToTopic(aws.address, topicArn, webhook, { source: 'gitlab', event_type: 'pipeline' });
    return mergeRequest;
  }
});

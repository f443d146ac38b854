import { type FauxqsServer, startFauxqs } from 'fauxqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sessionKey } from '../../src/agent/session.ts';
import type { AgentRun } from '../../src/crds/agent-run.ts';
import { createFolderStore } from '../../src/store/folder.ts';
import { sharedCluster } from '../cluster/shared.ts';
import { mergeRequestHook, noteHook } from '../fakes/gitlab/index.ts';
import type { FakeDiscussion, FakeUser } from '../fakes/gitlab/state.ts';
import { publishToTopic } from '../fakes/sns-publish.ts';
import { aWorld, type World } from './world.ts';

const FOUND = 'The cache is not emptied.';

/** What people write on a merge request, from the webhook to the note. */
describe('people on a merge request', () => {
  let world: World;
  let aws: FauxqsServer;
  let topicArn: string;
  let eve: FakeUser;
  /** The model keeps its answer to an automatic run back until this resolves. */
  const gate = Promise.withResolvers<void>();

  beforeAll(async () => {
    aws = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });
    const { queueUrl } = aws.createQueue('events', { attributes: { VisibilityTimeout: '30' } });
    topicArn = aws.createTopic('webhooks').topicArn;
    aws.subscribe({ topic: 'webhooks', queue: 'events' });
    world = await aWorld(await sharedCluster(), {
      replicas: 2,
      workflowSpec: {
        triggers: [{ event: 'MergeRequest' }],
        // One turn after the other costs the suite no sandbox.
        sandbox: { none: true },
        limits: { timeout: '10m', maxRunsPerMergeRequest: 2 },
      },
      scripts: {
        'test-script': async ({ messages }) => {
          const last = String(messages.at(-1)?.content);
          if (last.includes('"kind": "MergeRequest"')) await gate.promise;
          const told = messages.filter(({ content }) => String(content).includes('You said:')).length;
          return { text: last.includes('"project"') ? FOUND : `You said: ${last} (${told} before)` };
        },
      },
      operator: async () => ({
        queue: { url: queueUrl, endpoint: aws.address },
        args: ['--accept-unsigned-markers'],
      }),
    });
    eve = world.gitlab.state.user({ username: 'eve' });
    await world.operator.waitReady(120_000);
    const { agents } = world.namespaces;
    // The bot is known from then on.
    await world.kubectl([
      ...['wait', '--for=condition=Ready', 'agentworkflow/analyze-failures', '-n', agents, '--timeout=120s'],
    ]);
  }, 300_000);
  afterAll(async () => {
    gate.resolve();
    await world?.close();
    await aws?.stop();
  });

  const publish = (payload: { readonly object_kind: string }) =>
    publishToTopic(aws.address, topicArn, JSON.stringify(payload), {
      source: 'gitlab',
      event_type: payload.object_kind,
    });

  async function write(
    body: string,
    {
      author = world.mergeRequest.author,
      discussion,
    }: { author?: FakeUser; discussion?: FakeDiscussion } = {},
  ) {
    const place = discussion === undefined ? { individual: true } : { discussion };
    const written = world.gitlab.state.note(world.mergeRequest, { author, body, ...place });
    await publish(noteHook(world.gitlab.url, world.mergeRequest, written));
    return written;
  }

  const runs = async (): Promise<readonly AgentRun[]> => {
    const { agents } = world.namespaces;
    return JSON.parse(await world.kubectl(['get', 'agentruns', '-n', agents, '-o', 'json'])).items;
  };

  /** The run that a note or a commit has caused, when it has ended. */
  async function ended(of: (run: AgentRun) => boolean): Promise<AgentRun> {
    await world.waitUntil('a run', async () => (await runs()).some(of));
    return world.waitEnd((await runs()).find(of)?.metadata.name ?? '', 240_000);
  }
  const byNote = (noteId: number) => ended(({ spec }) => spec.trigger.noteId === noteId);

  const discussionOf = (run: AgentRun): FakeDiscussion => {
    const found = world.mergeRequest.discussions.find(({ id }) => id === run.status?.note?.discussionId);
    if (found === undefined) throw new Error(`${run.metadata.name} has no discussion`);
    return found;
  };
  const bodies = ({ notes }: FakeDiscussion) => notes.map(({ body }) => body);

  it('start a workflow by a command, reply to its answer, and are answered in order in its thread', async () => {
    const command = await write('/hummingbird analyze Look at the cache');
    const first = await byNote(command.note.id);
    expect(first.status?.phase).toBe('Succeeded');
    expect(first.spec).toMatchObject({
      trigger: { kind: 'Command', user: 'ada' },
      message: 'Look at the cache',
    });
    const thread = discussionOf(first);
    expect(thread.id).not.toBe(command.discussion.id);
    expect(bodies(thread)).toEqual([expect.stringContaining(FOUND)]);

    const [one, two] = [
      await write('Which one?', { discussion: thread }),
      await write('And why?', { discussion: thread }),
    ];
    const [, second] = [await byNote(one.note.id), await byNote(two.note.id)];
    expect(second.status).toMatchObject({ phase: 'Succeeded', session: first.metadata.uid });
    const answers = bodies(thread).filter((body) => body.includes('You said:'));
    expect(answers.map((body) => body.split('\n')[0])).toEqual([
      'You said: Which one? (0 before)',
      'You said: And why? (1 before)',
    ]);

    // Its conversation is gone: the reply is told so, and no analysis starts.
    const { agents } = world.namespaces;
    const session = first.metadata.uid ?? '';
    await world.kubectl(['delete', 'agentsession', session, '-n', agents, '--timeout=120s']);
    const late = await write('Still there?', { discussion: thread });
    expect((await byNote(late.note.id)).status?.phase).toBe('Failed');
    expect(bodies(thread).at(-1)).toContain('has expired');
  }, 600_000);

  it('reply to a note from before markers were signed, and its conversation goes on in the fields of today', async () => {
    const id = '5a0d5fd2-0d37-4bd8-9d8e-5d6a6d5c2b3e';
    const contents = [
      { role: 'user', parts: [{ text: 'You said: long ago' }] },
      { role: 'model', parts: [{ text: FOUND }] },
    ];
    const store = createFolderStore(world.storeDir);
    await store.put(sessionKey(id, 'context'), Buffer.from(JSON.stringify({ contents })));
    const [bot] = world.mergeRequest.discussions.flatMap(({ notes }) =>
      notes.flatMap(({ author }) => (author.bot && author.username !== 'operator' ? [author] : [])),
    );
    if (bot === undefined) throw new Error('the bot has written nothing');
    const body = `${FOUND}\n\n<!-- hummingbird-session ${id} -->`;
    const { discussion } = world.gitlab.state.note(world.mergeRequest, { author: bot, body, internal: true });
    const reply = await write('Which one?', { discussion });
    const run = await byNote(reply.note.id);
    expect(run.status).toMatchObject({ phase: 'Succeeded', session: id });
    expect(run.spec).toMatchObject({ workflowRef: { name: 'analyze-failures' }, sessionRef: { name: id } });
    expect(bodies(discussion).at(-1)).toMatch(/^You said: Which one\? \(1 before\)/);
    const { agents } = world.namespaces;
    const session = JSON.parse(await world.kubectl(['get', 'agentsession', id, '-n', agents, '-o', 'json']));
    expect(session.spec.workflowRef.name).toBe('analyze-failures');
    expect(bodies(discussion).at(-1)).toMatch(new RegExp(`"id":"${id}".*"sig":`));
  }, 300_000);

  it('are helped, and refused in their thread when they are no Developers', async () => {
    const help = await write('/hummingbird help');
    const denied = await write('/hummingbird analyze-failures', { author: eve });
    const cited = await write('> /hummingbird analyze-failures\nwhat is this?');
    const answered = ({ discussion }: { discussion: FakeDiscussion }) =>
      world.waitUntil('an answer', () => discussion.notes.length === 2);
    await Promise.all([answered(help), answered(denied)]);
    expect(bodies(help.discussion)[1]).toContain('`/hummingbird analyze-failures`');
    expect(bodies(denied.discussion)[1]).toContain('Developer');
    const caused = [help, denied, cited].map(({ note }) => note.id);
    expect((await runs()).filter(({ spec }) => caused.includes(spec.trigger.noteId ?? 0))).toEqual([]);
    expect(bodies(cited.discussion)).toHaveLength(1);
    expect(world.gitlab.violations).toEqual([]);
  }, 600_000);

  it('push again: the run about the older commit is superseded, says so, and the newer one answers', async () => {
    const { mergeRequest, gitlab } = world;
    const at = (sha: string) => (run: AgentRun) =>
      run.spec.trigger.kind === 'MergeRequest' && run.spec.mergeRequest.sha === sha;
    const older = mergeRequest.sha;
    await publish(mergeRequestHook(gitlab.url, mergeRequest, { action: 'open' }));
    await world.waitUntil(
      'a run about the older commit',
      async () => (await runs()).find(at(older))?.status?.phase === 'Running',
    );
    const newer = gitlab.state.push(mergeRequest);
    await publish(mergeRequestHook(gitlab.url, mergeRequest, { action: 'update', oldrev: older }));
    const superseded = await ended(at(older));
    expect(superseded.status?.conditions?.[0]).toMatchObject({ type: 'Succeeded', reason: 'Superseded' });
    expect(superseded.status?.phase).toBe('Cancelled');
    expect(bodies(discussionOf(superseded)).join()).toContain('superseded by a newer push');
    gate.resolve();
    const run = await ended(at(newer));
    expect(run.status?.phase).toBe('Succeeded');
    expect(bodies(discussionOf(run)).join()).toContain(FOUND);

    // Two have run by themselves, which is the limit here; the command before did not count.
    for (const how of ['first', 'again']) {
      const another = gitlab.state.push(mergeRequest, { title: how });
      await publish(mergeRequestHook(gitlab.url, mergeRequest, { action: 'update', oldrev: newer }));
      const limited = await ended(at(another));
      expect(limited.status?.conditions?.[0]).toMatchObject({ type: 'Succeeded', reason: 'RateLimited' });
      expect(limited.status?.note).toBeUndefined();
    }
    const notices = mergeRequest.discussions.flatMap(bodies).filter((body) => body.includes('by itself'));
    expect(notices).toHaveLength(1);
  }, 600_000);
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeEnvelope } from '../../src/bridge/queue/envelope.ts';
import { AGENT_RUNS, type AgentRun } from '../../src/crds/agent-run.ts';
import { renderMarker } from '../../src/notes/marker.ts';
import { aPipelineEvent } from '../builders/pipeline-event.ts';
import { until } from '../builders/pool.ts';
import { mergeRequestHook, noteHook } from '../fakes/gitlab/index.ts';
import type { FakeDiscussion, FakeNote, FakeUser } from '../fakes/gitlab/state.ts';
import {
  aWorker,
  type BridgeWorld,
  bridgeWorld,
  type ServedProject,
  type TestQueue,
} from './bridge-world.ts';
import { MARKER } from './gitlab.ts';

let world: BridgeWorld;
beforeAll(async () => {
  world = await bridgeWorld();
});
afterAll(() => world?.close());

const BASE = 'https://gitlab.example.org';

/** Hands webhooks to a worker, one after the other or all at once, until nothing is left. */
async function handled(payloads: readonly { object_kind: string }[], together = false) {
  // Long enough for a busy machine: a message that is seen again would be counted again.
  const visibilitySeconds = 120;
  const events = world.aQueue({ visibilitySeconds });
  const worker = aWorker(world, events.queue, { visibilitySeconds });
  for (const payload of payloads) {
    await events.send(await encodeEnvelope({ source: 'gitlab', eventType: payload.object_kind, payload }));
    if (!together) await settled(events);
  }
  await settled(events);
  await worker.stop();
  expect(events.dead()).toEqual([]);
  expect(world.gitlab.gitlab.violations).toEqual([]);
  return worker;
}
const settled = (queue: TestQueue) => until('the queue is empty', () => queue.left() === 0);

const open = (served: ServedProject) => mergeRequestHook(BASE, served.mergeRequest, { action: 'open' });
const update = (served: ServedProject, options: { oldrev?: string; changes?: Record<string, unknown> }) =>
  mergeRequestHook(BASE, served.mergeRequest, { action: 'update', ...options });
const shasOf = async ({ name }: ServedProject) =>
  (await world.runsOf(name)).map(({ spec }) => spec.mergeRequest.sha).sort();

interface Written {
  readonly discussion: FakeDiscussion;
  readonly note: FakeNote;
}

function write(
  { mergeRequest }: ServedProject,
  body: string,
  options: { author?: FakeUser; discussion?: FakeDiscussion } = {},
): Written {
  const { author = world.gitlab.alice, discussion } = options;
  const place = discussion === undefined ? { individual: true } : { discussion };
  return world.gitlab.gitlab.state.note(mergeRequest, { author, body, ...place });
}
const hookOf = ({ mergeRequest }: ServedProject, written: Written, action: 'create' | 'update' = 'create') =>
  noteHook(BASE, mergeRequest, written, action);
const answersIn = ({ notes }: FakeDiscussion) =>
  notes.filter(({ author }) => author.id === world.gitlab.operator.id).map(({ body }) => body);

describe('merge request events', () => {
  it('BR-05: labels, milestones and a second delivery at once look at a commit once, a push again', async () => {
    const served = await world.aWorkflow(['MergeRequest']);
    const first = served.mergeRequest.sha;
    await handled([open(served), update(served, { changes: { labels: {} } })], true);
    await handled([update(served, { changes: { milestone_id: {} } })]);
    expect(await shasOf(served)).toEqual([first]);
    const second = world.gitlab.gitlab.state.push(served.mergeRequest);
    const pushed = update(served, { oldrev: first });
    await handled([pushed, pushed]);
    expect(await shasOf(served)).toEqual([first, second].sort());

    await handled([hookOf(served, write(served, `/hummingbird ${served.name}`))]);
    expect(await shasOf(served)).toEqual([first, second, second].sort());
  });

  it('BR-06: a draft waits, also one that is called work in progress; BR-07: being ready starts it', async () => {
    const served = await world.aWorkflow(['MergeRequest']);
    served.mergeRequest.draft = true;
    const { object_attributes: given, ...rest } = open(served);
    const older = { ...rest, object_attributes: { ...given, draft: null, work_in_progress: true } };
    const worker = await handled([open(served), older as unknown as ReturnType<typeof open>]);
    expect(await shasOf(served)).toEqual([]);
    expect(await worker.count('skips', 'SkippedDraft')).toBe(2);
    served.mergeRequest.draft = false;
    await handled([update(served, { changes: { draft: { previous: true, current: false } } })]);
    expect(await shasOf(served)).toEqual([served.mergeRequest.sha]);
  });

  it('start nothing for what a stranger has pushed, also when a Developer sets a label', async () => {
    const served = await world.aWorkflow(['MergeRequest']);
    const eve = world.gitlab.gitlab.state.user({ username: 'eve' });
    world.gitlab.gitlab.state.push(served.mergeRequest, { author: eve });
    const worker = await handled([
      mergeRequestHook(BASE, served.mergeRequest, { action: 'update', user: eve, oldrev: 'a'.repeat(40) }),
      update(served, { changes: { labels: {} } }),
    ]);
    expect(await shasOf(served)).toEqual([]);
    expect(await worker.count('skips', 'AccessDenied')).toBe(2);
    expect(served.mergeRequest.discussions).toEqual([]);
  });
});

describe('threads of the bot', () => {
  const thread = (served: ServedProject, sha: string, wf = served.name) =>
    write(served, `Found.\n\n${renderMarker({ id: 's', wf, sha, run: 'uid' }, MARKER)}`, {
      author: served.bot,
    });
  const began = (served: ServedProject, sha: string) => {
    const { discussion } = thread(served, sha);
    // Discussions are resolvable, single notes are not.
    discussion.individualNote = false;
    return discussion;
  };
  const resolved = (...discussions: FakeDiscussion[]) => discussions.map(({ notes }) => notes[0]?.resolved);

  it('are resolved when the pipeline succeeds', async () => {
    const served = await world.aWorkflow();
    const discussion = began(served, served.mergeRequest.sha);
    const worker = await handled([
      aPipelineEvent({ project: served.project, status: 'success' }) as { object_kind: string },
    ]);
    expect(resolved(discussion)).toEqual([true]);
    expect(await world.runsOf(served.name)).toEqual([]);
    expect(await worker.count('skips', 'SkippedRule')).toBe(1);
  });

  it('about earlier commits are resolved after a push', async () => {
    const served = await world.aWorkflow(['MergeRequest']);
    const old = began(served, served.mergeRequest.sha);
    const oldrev = served.mergeRequest.sha;
    const current = began(served, world.gitlab.gitlab.state.push(served.mergeRequest));
    await handled([update(served, { oldrev })]);
    expect(resolved(old, current)).toEqual([true, false]);
  });
});

describe('commands', () => {
  it('BR-10: help is answered on a merge request only, once for a note however often it comes', async () => {
    const served = await world.aWorkflow();
    const written = write(served, '/hummingbird help');
    const hook = hookOf(served, written);
    const elsewhere = ['Commit', 'Issue', 'Snippet'].map((noteable_type) => {
      const { merge_request: _, ...rest } = hook;
      return { ...rest, object_attributes: { ...hook.object_attributes, noteable_type } };
    });
    const worker = await handled([...elsewhere, hook, hook]);
    const [answer, ...others] = answersIn(written.discussion);
    expect(others).toEqual([]);
    expect(answer).toContain(`\`/hummingbird ${served.name}\``);
    expect(await worker.count('skips', 'NotMergeRequestNote')).toBe(3);
    expect(await world.runsOf(served.name)).toEqual([]);

    // BR-11: the answer comes back as an event.
    const [, note] = written.discussion.notes;
    if (note === undefined) throw new Error('the answer is there');
    const answers = { discussion: written.discussion, note };
    const again = await handled([hookOf(served, answers), hookOf(served, answers, 'update')]);
    expect(await again.count('skips', 'OwnNote')).toBe(1);
    expect(await again.count('skips', 'NoteNotNew')).toBe(1);
    expect(written.discussion.notes).toHaveLength(2);
  });

  it('are answered once when two replicas are handed a note in the same instant', async () => {
    const served = await world.aWorkflow();
    const asked = write(served, '/hummingbird help');
    const { faults } = world.gitlab.gitlab;
    // Long enough for both to have looked before either has posted.
    faults.add({ method: 'POST', path: /notes/, delayMs: 3_000, times: Number.POSITIVE_INFINITY });
    const payload = hookOf(served, asked);
    const message = await encodeEnvelope({ source: 'gitlab', eventType: 'note', payload });
    const replicas = [1, 2].map(() => {
      const events = world.aQueue({ visibilitySeconds: 120 });
      return { events, worker: aWorker(world, events.queue, { visibilitySeconds: 120 }) };
    });
    await Promise.all(replicas.map(({ events }) => events.send(message)));
    await Promise.all(replicas.map(({ events }) => settled(events)));
    await Promise.all(replicas.map(({ worker }) => worker.stop()));
    faults.clear();
    expect(answersIn(asked.discussion)).toHaveLength(1);
    const outcomes = replicas.map(({ worker }) =>
      Promise.all(['posted', 'existing'].map((outcome) => worker.count('answers', outcome))),
    );
    expect((await Promise.all(outcomes)).toSorted()).toEqual([
      [0, 1],
      [1, 0],
    ]);
  });

  it('BR-12: start a run where the note begins with one, and nowhere else', async () => {
    const served = await world.aWorkflow();
    const command = `/hummingbird ${served.name}`;
    const bodies = [`> ${command}\nwhy did this run?`, `\`${command}\``, `\`\`\`\n${command}\n\`\`\``];
    await handled(bodies.map((body) => hookOf(served, write(served, body))));
    expect(await world.runsOf(served.name)).toEqual([]);
    const written = write(served, `${command} Look at the cache`);
    await handled([hookOf(served, written), hookOf(served, written)]);
    expect((await world.runsOf(served.name)).map(({ spec }) => spec)).toMatchObject([
      {
        trigger: { kind: 'Command', noteId: written.note.id, user: 'alice', userId: 9 },
        message: 'Look at the cache',
        mergeRequest: { iid: 7, sha: served.mergeRequest.sha },
      },
    ]);
    expect(answersIn(written.discussion)).toEqual([]);
  });

  it('of a stranger are refused once, and what strangers say to each other is not', async () => {
    const served = await world.aWorkflow();
    const eve = world.gitlab.gitlab.state.user({ username: 'eve' });
    const command = write(served, `/hummingbird ${served.name}`, { author: eve });
    const comment = write(served, 'I like it.', { author: eve });
    const worker = await handled([command, command, comment].map((written) => hookOf(served, written)));
    expect(answersIn(command.discussion)).toEqual([expect.stringContaining('Developer')]);
    expect(answersIn(comment.discussion)).toEqual([]);
    expect(await worker.count('skips', 'AccessDenied')).toBe(2);
    expect(await worker.count('answers', 'existing')).toBe(1);
    expect(await world.runsOf(served.name)).toEqual([]);
    const asked = world.gitlab.gitlab.requests.filter(({ path }) => path.includes(`members/all/${eve.id}`));
    expect(asked).toHaveLength(2);
  });

  it('cancel stops the runs on the merge request, and status shows them', async () => {
    const served = await world.aWorkflow();
    await handled([hookOf(served, write(served, `/hummingbird ${served.name}`))]);
    const [run] = await world.runsOf(served.name);
    await until('the informer knows the run', () => world.runs.list().some((one) => same(one, run)));
    const status = write(served, '/hummingbird status');
    const cancel = write(served, '/hummingbird cancel');
    await handled([hookOf(served, status), hookOf(served, cancel)]);
    expect(answersIn(status.discussion)).toEqual([expect.stringContaining(run?.metadata.name ?? 'none')]);
    expect(answersIn(cancel.discussion)).toEqual([expect.stringContaining(run?.metadata.name ?? 'none')]);
    const { name = '', namespace = '' } = run?.metadata ?? {};
    expect((await world.kube.get(AGENT_RUNS, { name, namespace }))?.spec.cancel).toBe(true);
  });
});

const same = (a: AgentRun, b: AgentRun | undefined) => a.metadata.uid === b?.metadata.uid;

describe('replies', () => {
  const thread = (served: ServedProject) =>
    write(served, `Found.\n\n${renderMarker({ id: 'session-1', wf: served.name, run: 'uid' }, MARKER)}`, {
      author: served.bot,
    });

  it('in the thread of a bot go on with its session, in order', async () => {
    const served = await world.aWorkflow();
    const { discussion } = thread(served);
    const replies = ['Which cache?', 'And why?'].map((body) => write(served, body, { discussion }));
    await handled(replies.map((written) => hookOf(served, written)));
    const runs = await world.runsOf(served.name);
    const byNote = runs.toSorted((a, b) => (a.spec.trigger.noteId ?? 0) - (b.spec.trigger.noteId ?? 0));
    expect(byNote.map(({ spec }) => spec)).toMatchObject(
      replies.map(({ note }) => ({
        sessionRef: { name: 'session-1' },
        message: note.body,
        trigger: { kind: 'Reply', noteId: note.id, discussionId: discussion.id },
      })),
    );
    expect(runs[0]?.metadata.labels?.['hummingbird.dev/session']).toBe('session-1');
  });

  it('BR-18 (b): that no run can take are answered once, and start nothing', async () => {
    const served = await world.aWorkflow();
    const { discussion } = thread(served);
    const written = write(served, 'x'.repeat(200_000), { discussion });
    await handled([hookOf(served, written), hookOf(served, written)]);
    expect(answersIn(discussion)).toEqual([expect.stringContaining('200000 characters')]);
    expect(await world.runsOf(served.name)).toEqual([]);
  });
});

it('while GitLab does not answer, messages wait in the queue and nobody is refused', async () => {
  const served = await world.aWorkflow();
  const { faults } = world.gitlab.gitlab;
  faults.add({ path: /members/, status: 503, times: Number.POSITIVE_INFINITY });
  faults.add({ path: /^user/, status: 503, times: Number.POSITIVE_INFINITY });
  const events = world.aQueue({ maxReceiveCount: 10 });
  // The emulator lets an abandoned poll take the message before its wait is over.
  const worker = aWorker(world, events.queue, { waitSeconds: 1, visibilitySeconds: 2 });
  const payload = hookOf(served, write(served, `/hummingbird ${served.name}`));
  await events.send(await encodeEnvelope({ source: 'gitlab', eventType: 'note', payload }));
  await until('it failed', async () => (await worker.count('messages', 'failed')) > 0);
  expect(events.left()).toBe(1);
  faults.clear();
  await until('its run is there', async () => (await world.runsOf(served.name)).length === 1);
  await settled(events);
  await worker.stop();
  expect(events.dead()).toEqual([]);
  expect(await worker.count('skips', 'AccessDenied')).toBe(0);
});

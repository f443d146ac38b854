import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ACCESS, type FakeDiscussion, type FakeUser } from '../../test/fakes/gitlab/index.ts';
import { aScene } from '../../test/fakes/gitlab/scene.ts';
import { createHttpClient, type HttpClient, HttpError } from '../http/client.ts';
import { actionToken, orchestratorToken } from '../settings/tokens.ts';
import { createNotesFactory } from './gitlab-notes.ts';
import { type MarkerOptions, parseMarker, renderMarker } from './marker.ts';
import { createMergeRequestsFactory } from './merge-requests.ts';
import type { Marker } from './port.ts';

const keys = [{ id: 'k1', secret: 'marker secret' }] as const;
const marker = { id: 'session-1', wf: 'analyze', sha: 'abc', run: 'uid-1' };
const at = { project: 'group/app', iid: 1 };

let scene: Awaited<ReturnType<typeof aScene>>;
let http: HttpClient;
beforeEach(async () => {
  scene = await aScene();
  const noWait = { now: Date.now, random: () => 0, sleep: async () => {} };
  http = createHttpClient({ clock: noWait });
});
afterEach(async () => {
  expect(scene.gitlab.violations).toEqual([]);
  await http.close();
  await scene.gitlab.stop();
});

const notes = (token = scene.bot.token, more: Partial<MarkerOptions> = {}) =>
  createNotesFactory({
    http,
    baseUrl: scene.gitlab.url,
    marker: { keys, ...more },
    footer: 'Reply to go on.',
  }).notesFor('group/app', actionToken(token));
const value = async <T>(doing: Promise<{ kind: 'Ok'; value: T } | { kind: 'Refused' }>): Promise<T> => {
  const result = await doing;
  if (result.kind !== 'Ok') throw new Error(JSON.stringify(result));
  return result.value;
};
const posts = () => scene.gitlab.requests.filter(({ method }) => method === 'POST');

describe('create and update', () => {
  test('a note is a new discussion of the bot, with its marker last', async () => {
    const ref = await value(notes().create(at, { text: 'Running…', marker, internal: false }));
    const [discussion] = scene.mergeRequest.discussions;
    const [note] = discussion?.notes ?? [];
    expect(ref).toEqual({
      discussionId: discussion?.id,
      noteId: note?.id,
      url: `${scene.gitlab.url}/group/app/-/merge_requests/1#note_${note?.id}`,
    });
    expect(note).toMatchObject({ author: scene.bot.user, internal: false });
    expect(note?.body).toMatch(/^Running…\n\n---\n\nReply to go on\.\n\n<!-- hummingbird-session: /);
    expect(parseMarker(note?.body ?? '', { keys })).toEqual({ kind: 'Signed', marker });
  });

  test('an update replaces the text and keeps note, discussion and marker', async () => {
    const ref = await value(notes().create(at, { text: 'Running…', marker, internal: false }));
    expect(await value(notes().update(at, ref, { text: 'Done.\n/close', marker }))).toEqual(ref);
    expect(scene.mergeRequest).toMatchObject({ state: 'opened', commands: [] });
    expect(scene.mergeRequest.discussions[0]?.notes).toHaveLength(1);
    expect(scene.mergeRequest.discussions[0]?.notes[0]?.body).toMatch(/^Done\.\n\\\/close\n/);
    expect(posts()).toHaveLength(1);
  });

  test('a reply stands in the discussion that it answers', async () => {
    const { discussion } = scene.state.note(scene.mergeRequest, { author: scene.users.ada, body: 'why?' });
    const ref = await value(
      notes().create(at, { text: 'So.', marker, internal: false, discussionId: discussion.id }),
    );
    expect(ref.discussionId).toBe(discussion.id);
    expect(discussion.notes.map(({ author }) => author.username)).toEqual(['ada', scene.bot.user.username]);
  });

  test('an internal note is internal, and a reply to it too', async () => {
    const ref = await value(notes().create(at, { text: 'x', marker, internal: true }));
    expect(scene.mergeRequest.discussions[0]).toMatchObject({
      id: ref.discussionId,
      notes: [{ id: ref.noteId, internal: true }],
    });
    await value(notes().create(at, { text: 'y', marker, internal: true, discussionId: ref.discussionId }));
    expect(scene.mergeRequest.discussions[0]?.notes.map(({ internal }) => internal)).toEqual([true, true]);
  });

  test('an internal answer to a public discussion stands beside it', async () => {
    const { discussion } = scene.state.note(scene.mergeRequest, { author: scene.users.ada, body: 'why?' });
    await value(notes().create(at, { text: 'secret', marker, internal: true, discussionId: discussion.id }));
    expect(discussion.notes).toHaveLength(1);
    expect(scene.mergeRequest.discussions[1]?.notes[0]?.internal).toBe(true);
  });

  test('a bot that may not write internal notes leaves no public one behind', async () => {
    const open = scene.state.project({ path: 'group/open', visibility: 'public' });
    const mergeRequest = scene.state.mergeRequest(open, { author: scene.users.ada });
    const weak = scene.state.projectBot(open, { level: ACCESS.guest });
    const factory = createNotesFactory({ http, baseUrl: scene.gitlab.url, marker: { keys } });
    const made = await factory
      .notesFor('group/open', actionToken(weak.token))
      .create({ project: 'group/open', iid: 1 }, { text: 'secret', marker, internal: true });
    expect(made).toMatchObject({
      kind: 'Refused',
      status: 403,
      message: expect.stringContaining('Reporter'),
    });
    expect(mergeRequest.discussions).toEqual([]);
  });
});

describe('the search before a POST', () => {
  test('a note whose answer was lost is posted once and found', async () => {
    scene.gitlab.faults.add({ method: 'POST', path: /discussions$/, dropAfterHandling: true });
    await expect(notes().create(at, { text: 'Running…', marker, internal: false })).rejects.toThrow(
      HttpError,
    );
    expect(posts()).toHaveLength(1);
    const found = await value(notes().findByRun(at, 'uid-1'));
    expect(found?.noteId).toBe(scene.mergeRequest.discussions[0]?.notes[0]?.id);
    expect(await value(notes().findByRun(at, 'uid-2'))).toBeUndefined();
  });

  test('a POST that GitLab answers 502 is not repeated', async () => {
    scene.gitlab.faults.add({ method: 'POST', path: /discussions$/, status: 502 });
    await expect(notes().create(at, { text: 'x', marker, internal: false })).rejects.toMatchObject({
      status: 502,
      retryable: true,
    });
    expect(posts()).toHaveLength(1);
  });

  test('an update whose answer was lost is repeated', async () => {
    const ref = await value(notes().create(at, { text: 'x', marker, internal: false }));
    scene.gitlab.faults.add({ method: 'PUT', path: /notes/, dropAfterHandling: true });
    await value(notes().update(at, ref, { text: 'Done.', marker }));
    expect(scene.mergeRequest.discussions[0]?.notes[0]?.body).toMatch(/^Done\./);
  });

  test.each(['offset', 'no-link', 'keyset'] as const)('it reads all pages (%s)', async (paging) => {
    scene.gitlab.paging = paging;
    for (let index = 0; index < 230; index++)
      scene.state.note(scene.mergeRequest, { author: scene.users.ada, body: `note ${index}` });
    const ref = await value(notes().create(at, { text: 'x', marker, internal: false }));
    expect(await value(notes().findByRun(at, 'uid-1'))).toEqual(ref);
    expect(
      scene.gitlab.requests.filter(({ method, path }) => method === 'GET' && path.includes('/discussions')),
    ).toHaveLength(3);
  });

  test("BR-11: a human note with a marker in it, even a true one, is not the bot's", async () => {
    scene.state.note(scene.mergeRequest, {
      author: scene.users.ada,
      body: `look:\n\n${renderMarker(marker, { keys })}`,
    });
    expect(await value(notes().findByRun(at, 'uid-1'))).toBeUndefined();
  });

  test("a forged or an unsigned marker in the bot's own note is not taken", async () => {
    const forged = renderMarker(marker, { keys: [{ id: 'k1', secret: 'a guess' }] });
    const unsigned = `<!-- hummingbird-session: ${JSON.stringify(marker)} -->`;
    for (const body of [forged, unsigned])
      scene.state.note(scene.mergeRequest, { author: scene.bot.user, body });
    expect(await value(notes().findByRun(at, 'uid-1'))).toBeUndefined();
  });
});

describe('the threads of a workflow', () => {
  const add = (fields: Partial<Marker>, options: { author?: FakeUser; discussion?: FakeDiscussion } = {}) => {
    const body = `Found.\n\n${renderMarker({ id: 's', wf: 'analyze', ...fields }, { keys })}`;
    const { author = scene.bot.user, ...place } = options;
    return scene.state.note(scene.mergeRequest, { author, body, ...place }).discussion;
  };

  test('are those with a marker of its bot that names a commit, each counted once', async () => {
    const first = add({ sha: 'a', run: 'one' });
    add({ sha: 'a', run: 'again' }, { discussion: first });
    add({ sha: 'b', run: 'two' });
    add({ run: 'asked for' });
    add({ sha: 'c', wf: 'review' });
    add({ sha: 'd' }, { author: scene.users.ada });
    expect(await value(notes().threadsOf(at, 'analyze'))).toEqual({
      count: 2,
      commits: new Map([
        ['a', new Set(['one', 'again'])],
        ['b', new Set(['two'])],
      ]),
    });
  });

  test('are read in one pass', async () => {
    for (let count = 0; count < 250; count += 1)
      scene.state.note(scene.mergeRequest, { author: scene.users.ada, body: 'x' });
    add({ sha: 'a' });
    expect((await value(notes().threadsOf(at, 'analyze'))).count).toBe(1);
    expect(scene.gitlab.requests.filter(({ path }) => path.includes('discussions'))).toHaveLength(3);
  });
});

describe('notes with markers from before they were signed', () => {
  const sha = 'a'.repeat(40);
  const uuid = '5a0d5fd2-0d37-4bd8-9d8e-5d6a6d5c2b3e';
  const old = (fields: object, author = scene.bot.user) => {
    const body = `Found.\n\n<!-- hummingbird-session: ${JSON.stringify({ id: uuid, ...fields })} -->`;
    return scene.state.note(scene.mergeRequest, { author, body }).discussion;
  };

  test('count nothing, and are not resolved', async () => {
    const { notes: found } = old({ wf: 'analyze', sha });
    expect((await value(notes().threadsOf(at, 'analyze'))).count).toBe(0);
    expect(await value(notes().resolveThreads(at, { workflow: 'analyze' }))).toBe(0);
    expect(found[0]?.resolved).toBe(false);
  });

  test('count like ours where they are accepted, if our bot wrote them', async () => {
    const accepting = notes(scene.bot.token, { acceptUnsigned: true });
    const { notes: found } = old({ wf: 'analyze', sha });
    old({ wf: 'analyze', sha: 'b'.repeat(40) }, scene.users.ada);
    old({ wf: 'review', sha });
    // The oldest form counts for no limit: it names no workflow.
    scene.state.note(scene.mergeRequest, {
      author: scene.bot.user,
      body: `<!-- hummingbird-session: ${uuid} -->`,
    });
    expect(await value(accepting.threadsOf(at, 'analyze'))).toEqual({
      count: 1,
      commits: new Map([[sha, new Set([''])]]),
    });
    expect(await value(accepting.resolveThreads(at, { workflow: 'analyze' }))).toBe(1);
    expect(found[0]?.resolved).toBe(true);
  });
});

describe('resolving threads', () => {
  const placed = (options: { wf?: string; sha?: string; author?: FakeUser; body?: string } = {}) => {
    const { wf = 'analyze', sha = 'abc', author = scene.bot.user } = options;
    const body = options.body ?? `Found.\n\n${renderMarker({ ...marker, wf, sha }, { keys })}`;
    return scene.state.note(scene.mergeRequest, { author, body }).discussion;
  };
  const isResolved = ({ notes: [first] }: FakeDiscussion) => first?.resolved;

  test('resolves what this bot began for the workflow, and nothing else', async () => {
    const own = [placed(), placed({ sha: 'def' })];
    const others = [
      placed({ wf: 'review' }),
      placed({ author: scene.users.ada }),
      placed({ body: 'No marker.' }),
      placed({ body: renderMarker(marker, { keys: [{ id: 'k1', secret: 'a guess' }] }) }),
    ];
    expect(await value(notes().resolveThreads(at, { workflow: 'analyze' }))).toBe(2);
    expect(own.map(isResolved)).toEqual([true, true]);
    expect(others.map(isResolved)).toEqual([false, false, false, false]);
    expect(await value(notes().resolveThreads(at, { workflow: 'analyze' }))).toBe(0);
  });

  test('keeps those that look at the commit that is named', async () => {
    const [old, current] = [placed({ sha: 'old' }), placed({ sha: 'new' })];
    expect(await value(notes().resolveThreads(at, { workflow: 'analyze', exceptSha: 'new' }))).toBe(1);
    expect([old, current].map(isResolved)).toEqual([true, false]);
  });

  test('leaves a single note alone, which GitLab cannot resolve', async () => {
    const body = renderMarker(marker, { keys });
    scene.state.note(scene.mergeRequest, { author: scene.bot.user, body, individual: true });
    expect(await value(notes().resolveThreads(at, { workflow: 'analyze' }))).toBe(0);
  });
});

describe('refusals', () => {
  test.each([
    [401, 'an unknown token', () => 'glpat-unknown'],
    [403, 'a read-only token', () => scene.state.projectBot(scene.project, { scopes: ['read_api'] }).token],
    [
      404,
      'the bot of another project',
      () => scene.state.projectBot(scene.state.project({ path: 'group/else' })).token,
    ],
  ])('%i for %s is an outcome, not an exception', async (status, _what, token) => {
    const made = await notes(token()).create(at, { text: 'x', marker, internal: false });
    expect(made).toMatchObject({
      kind: 'Refused',
      status,
      message: expect.stringContaining(`answered ${status}`),
    });
    expect(JSON.stringify(made)).not.toContain('glpat-');
  });

  test('a refused bot id is asked again, a known one is not', async () => {
    scene.gitlab.faults.add({ path: /^user/, status: 401 });
    const own = notes();
    expect((await own.botUserId()).kind).toBe('Refused');
    expect(await value(own.botUserId())).toBe(scene.bot.user.id);
    await own.botUserId();
    expect(scene.gitlab.requests).toHaveLength(2);
  });
});

describe('what the operator asks', () => {
  const facts = (token?: string) => {
    const own = token ?? scene.state.token({ user: scene.users.reporter, scopes: ['read_api'] });
    return createMergeRequestsFactory({ http, baseUrl: scene.gitlab.url }).mergeRequestsWith(
      orchestratorToken(own),
    );
  };

  test('a merge request', async () => {
    scene.mergeRequest.draft = true;
    expect(await value(facts().get(at))).toEqual({
      projectId: scene.project.id,
      iid: 1,
      title: 'Draft: Add a cache',
      state: 'opened',
      draft: true,
      sha: scene.mergeRequest.sha,
      sourceBranch: 'feature-1',
      targetBranch: 'main',
      webUrl: `${scene.gitlab.url}/group/app/-/merge_requests/1`,
      authorId: scene.users.ada.id,
      headPipelineId: undefined,
      sourceProjectId: scene.project.id,
    });
    const pipeline = scene.state.pipeline(scene.project, {
      user: scene.users.ada,
      mergeRequest: scene.mergeRequest,
    });
    expect((await value(facts().get(at))).headPipelineId).toBe(pipeline.id);
  });

  test('the newest push to a branch, also behind pages of pushes to others', async () => {
    const { state, mergeRequest, project, users } = scene;
    const pushed = async (branch = mergeRequest.sourceBranch) =>
      value(facts().pushAuthor({ sourceProjectId: project.id, sourceBranch: branch }));
    expect(await pushed()).toEqual({ id: users.ada.id, name: 'ada' });
    state.push(mergeRequest, { author: users.maintainer });
    expect((await pushed())?.name).toBe('maintainer');
    const busy = state.mergeRequest(project, { author: users.ada });
    for (let count = 0; count < 130; count += 1) state.push(busy);
    expect((await pushed())?.name).toBe('maintainer');
    expect(await pushed('gone')).toBeUndefined();
  });

  test('nobody has pushed to a project that is gone, and one that is not seen is a refusal', async () => {
    const asked = (sourceProjectId: number | undefined) =>
      facts().pushAuthor({ sourceProjectId, sourceBranch: 'feature-1' });
    expect(await asked(undefined)).toEqual({ kind: 'Ok', value: undefined });
    const hidden = scene.state.project({ path: 'else/fork' });
    expect(await asked(hidden.id)).toMatchObject({ kind: 'Refused', status: 404 });
  });

  test('a merge request or a project that does not exist is refused', async () => {
    expect(await facts().get({ project: 'group/app', iid: 9 })).toMatchObject({
      kind: 'Refused',
      status: 404,
    });
    expect(await facts().get({ project: 'group/none', iid: 1 })).toMatchObject({
      kind: 'Refused',
      status: 404,
    });
  });

  test('a level is that of the member, 0 for everybody else', async () => {
    expect(await value(facts().accessLevel('group/app', scene.users.ada.id))).toBe(ACCESS.developer);
    expect(await value(facts().accessLevel('group/app', scene.users.stranger.id))).toBe(0);
  });

  test('a level in a project that is not seen is a refusal, not 0', async () => {
    const token = scene.state.token({ user: scene.users.stranger });
    expect(await facts(token).accessLevel('group/app', scene.users.ada.id)).toMatchObject({
      kind: 'Refused',
      status: 404,
    });
  });

  test('a rate limit is waited for', async () => {
    scene.gitlab.faults.add({
      path: /merge_requests/,
      status: 429,
      headers: { 'retry-after': '2' },
      times: 2,
    });
    expect((await value(facts().get(at))).iid).toBe(1);
  });

  test('the signal ends a request', async () => {
    scene.gitlab.faults.add({ path: /merge_requests/, delayMs: 5_000 });
    await expect(facts().get(at, AbortSignal.timeout(50))).rejects.toMatchObject({ name: 'TimeoutError' });
  });
});

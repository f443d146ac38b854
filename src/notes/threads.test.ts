import { afterEach, beforeEach, expect, test } from 'vitest';
import { aScene } from '../../test/fakes/gitlab/scene.ts';
import { createHttpClient, type HttpClient } from '../http/client.ts';
import { orchestratorToken } from '../settings/tokens.ts';
import { renderMarker } from './marker.ts';
import { createThreads } from './threads.ts';

const keys = [{ id: 'k1', secret: 'marker secret' }] as const;
const marker = { id: 'session-1', wf: 'analyze', run: 'uid-1' };
const at = { project: 'group/app', iid: 1 };

let scene: Awaited<ReturnType<typeof aScene>>;
let http: HttpClient;
let token: string;
beforeEach(async () => {
  scene = await aScene();
  token = scene.state.token({ user: scene.users.maintainer });
  http = createHttpClient({ clock: { now: Date.now, random: () => 0, sleep: async () => {} } });
});
afterEach(async () => {
  expect(scene.gitlab.violations).toEqual([]);
  await http.close();
  await scene.gitlab.stop();
});

const threads = (own = token) =>
  createThreads({ http, baseUrl: scene.gitlab.url, marker: { keys } }, orchestratorToken(own));
const asked = (body = 'why?', internal = false) =>
  scene.state.note(scene.mergeRequest, { author: scene.users.ada, body, internal });

test('a thread is read with who wrote what, and what stands last in each note', async () => {
  const { state, mergeRequest, bot, users } = scene;
  const signed = `Found.\n\n${renderMarker(marker, { keys })}`;
  const { discussion } = state.note(mergeRequest, { author: bot.user, body: signed });
  state.note(mergeRequest, { author: users.ada, body: 'thanks', discussion });
  state.note(mergeRequest, { author: users.ada, body: signed, discussion, system: true });
  expect(await threads().read(at, discussion.id)).toMatchObject({
    kind: 'Ok',
    value: [
      { authorId: bot.user.id, system: false, marker: { kind: 'Signed', marker } },
      { authorId: users.ada.id, system: false, marker: undefined },
      { system: true, marker: undefined },
    ],
  });
  expect(await threads().read(at, 'a'.repeat(40))).toMatchObject({ kind: 'Refused', status: 404 });
});

test('an answer stands in the discussion that it answers, once, however often it is asked for', async () => {
  const { discussion, note } = asked();
  const to = { discussionId: discussion.id, noteId: note.id };
  expect(await threads().answer(at, to, 'Because.')).toEqual({ kind: 'Ok', value: 'Posted' });
  expect(await threads().answer(at, to, 'Because.')).toEqual({ kind: 'Ok', value: 'Found' });
  expect(discussion.notes.map(({ author }) => author.username)).toEqual(['ada', 'maintainer']);
  expect(discussion.notes[1]?.body).toMatch(/^Because\.\n\n<!-- hummingbird-answer: /);
  const again = scene.state.note(scene.mergeRequest, { author: scene.users.ada, body: 'and?', discussion });
  await threads().answer(at, { ...to, noteId: again.note.id }, 'So.');
  expect(discussion.notes.map(({ body }) => body.split('\n')[0])).toEqual([
    'why?',
    'Because.',
    'and?',
    'So.',
  ]);
});

test("somebody's copy of an answer does not stand for it", async () => {
  const { discussion, note } = asked();
  const body = `Nothing.\n\n<!-- hummingbird-answer: {"note":${note.id}} -->`;
  scene.state.note(scene.mergeRequest, { author: scene.users.ada, body, discussion });
  const done = await threads().answer(at, { discussionId: discussion.id, noteId: note.id }, 'Because.');
  expect(done).toEqual({ kind: 'Ok', value: 'Posted' });
});

test('an answer to an internal note is internal', async () => {
  const { discussion, note } = asked('why?', true);
  await threads().answer(at, { discussionId: discussion.id, noteId: note.id }, 'Because.');
  expect(discussion.notes.map(({ internal }) => internal)).toEqual([true, true]);
});

test('what an answer quotes has no effect', async () => {
  const { discussion, note } = asked();
  await threads().answer(at, { discussionId: discussion.id, noteId: note.id }, 'You wrote:\n/close\n@ada');
  expect(scene.mergeRequest).toMatchObject({ state: 'opened', commands: [] });
  expect(discussion.notes[1]?.body).not.toMatch(/@ada/);
});

test('a notice stands on the merge request once for each key, and is as internal as it is asked for', async () => {
  const notice = (key: string, internal = false) =>
    threads().notice(at, { key, text: `About ${key}.\n/close`, internal });
  expect(await notice('limit a--b')).toEqual({ kind: 'Ok', value: 'Posted' });
  expect(await notice('limit a--b')).toEqual({ kind: 'Ok', value: 'Found' });
  expect(await notice('limit c', true)).toEqual({ kind: 'Ok', value: 'Posted' });
  const notes = scene.mergeRequest.discussions.flatMap((discussion) => discussion.notes);
  expect(notes.map(({ internal }) => internal)).toEqual([false, true]);
  expect(notes[0]?.body).toMatch(/^About limit a--b\.\n/);
  expect(notes[0]?.body.slice(0, -3)).not.toMatch(/<!--.*--/);
  expect(scene.mergeRequest).toMatchObject({ state: 'opened', commands: [] });
  // Somebody's copy does not stand for it.
  const copied = notes[0]?.body.replaceAll('limit a', 'limit d') ?? '';
  scene.state.note(scene.mergeRequest, { author: scene.users.ada, body: copied });
  expect(await notice('limit d--b')).toEqual({ kind: 'Ok', value: 'Posted' });
});

test('a token that may only read is a refusal, and the own user is asked once', async () => {
  const own = threads(scene.state.token({ user: scene.users.reporter, scopes: ['read_api'] }));
  const { discussion, note } = asked();
  const to = { discussionId: discussion.id, noteId: note.id };
  expect(await own.answer(at, to, 'Because.')).toMatchObject({ kind: 'Refused', status: 403 });
  expect(await own.botUserId()).toEqual({ kind: 'Ok', value: scene.users.reporter.id });
  expect(scene.gitlab.requests.filter(({ path }) => path === 'user')).toHaveLength(1);
});

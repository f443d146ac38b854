import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ACCESS } from './index.ts';
import { aScene, call } from './scene.ts';

let scene: Awaited<ReturnType<typeof aScene>>;
beforeEach(async () => {
  scene = await aScene();
});
afterEach(() => scene.gitlab.stop());

const MR = 'projects/group%2Fapp/merge_requests/1';
const as = (token: string | undefined) => (method: string, path: string, body?: unknown) =>
  call(scene.gitlab, token, method, path, body);
const bot = (method: string, path: string, body?: unknown) => as(scene.bot.token)(method, path, body);

describe('access', () => {
  test('no token or an unknown one is 401', async () => {
    expect((await as(undefined)('GET', 'user')).status).toBe(401);
    expect(await as('glpat-wrong')('GET', 'user')).toMatchObject({
      status: 401,
      json: { message: '401 Unauthorized' },
    });
  });

  test('read_api reads and does not write', async () => {
    const token = scene.state.token({ user: scene.users.ada, scopes: ['read_api'] });
    expect((await as(token)('GET', MR)).status).toBe(200);
    const refused = await as(token)('POST', `${MR}/discussions`, { body: 'hello' });
    expect(refused).toMatchObject({ status: 403, json: { error: 'insufficient_scope', scope: 'api' } });
    expect(scene.mergeRequest.discussions).toHaveLength(0);
  });

  test('a private project does not exist for a stranger, nor its merge requests for a guest', async () => {
    const stranger = scene.state.token({ user: scene.users.stranger });
    expect(await as(stranger)('GET', 'projects/group%2Fapp')).toMatchObject({
      status: 404,
      json: { message: '404 Project Not Found' },
    });
    const guest = scene.state.token({ user: scene.users.guest });
    expect((await as(guest)('GET', 'projects/group%2Fapp')).status).toBe(200);
    expect((await as(guest)('GET', MR)).status).toBe(404);
  });

  test('a project bot does not see another project, not even a public one', async () => {
    scene.state.project({ path: 'group/open', visibility: 'public' });
    expect((await bot('GET', 'projects/group%2Fopen')).status).toBe(404);
  });

  test('a project is found by number and by path', async () => {
    const byNumber = await bot('GET', `projects/${scene.project.id}/merge_requests/1`);
    expect(byNumber.json).toMatchObject({
      iid: 1,
      title: 'Add a cache',
      project_id: scene.project.id,
      labels: ['backend'],
    });
  });

  test('a member has a level, everybody else is 404', async () => {
    const found = await bot('GET', `projects/group%2Fapp/members/all/${scene.users.maintainer.id}`);
    expect(found.json.access_level).toBe(ACCESS.maintainer);
    expect((await bot('GET', `projects/group%2Fapp/members/all/${scene.users.stranger.id}`)).status).toBe(
      404,
    );
  });
});

describe('strictness', () => {
  test('an unknown endpoint is 404, a wrong method 405, both are violations', async () => {
    expect(await bot('GET', 'projects/group%2Fapp/nonsense')).toMatchObject({
      status: 404,
      json: { error: '404 Not Found' },
    });
    const wrong = await bot('DELETE', 'user');
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get('allow')).toBe('GET');
    expect(scene.gitlab.violations).toHaveLength(2);
  });

  test('an unknown parameter is answered as if it were not there, and noted', async () => {
    expect((await bot('GET', `${MR}?perpage=3`)).status).toBe(200);
    await bot('POST', `${MR}/discussions`, { body: 'hello', internal: true });
    expect(scene.gitlab.violations).toEqual([
      'GET /api/v4/projects/group%2Fapp/merge_requests/1: unknown parameter perpage',
      'POST /api/v4/projects/group%2Fapp/merge_requests/1/discussions: unknown field internal',
    ]);
  });

  test('a missing or mistyped field is 400', async () => {
    expect(await bot('POST', `${MR}/discussions`, {})).toMatchObject({
      status: 400,
      json: { error: 'body is missing' },
    });
    expect(await bot('POST', `${MR}/notes`, { body: 7 })).toMatchObject({
      status: 400,
      json: { error: 'body is invalid' },
    });
    expect(await bot('GET', `${MR}/notes?page=x`)).toMatchObject({
      status: 400,
      json: { error: 'page is invalid' },
    });
  });
});

describe('notes', () => {
  const discussion = (body: string) => bot('POST', `${MR}/discussions`, { body });

  test('a discussion has a 40-digit id, its first note is resolvable and edited in place', async () => {
    const made = (await discussion('hello')).json;
    expect(made.id).toMatch(/^[0-9a-f]{40}$/);
    expect(made.individual_note).toBe(false);
    const [note] = made.notes;
    expect(note).toMatchObject({
      body: 'hello',
      resolvable: true,
      resolved: false,
      internal: false,
      type: 'DiscussionNote',
    });
    const edited = await bot('PUT', `${MR}/discussions/${made.id}/notes/${note.id}`, { body: 'better' });
    expect(edited.json).toMatchObject({ id: note.id, body: 'better' });
    expect((await bot('GET', `${MR}/discussions/${made.id}`)).json.notes[0].body).toBe('better');
  });

  test('a reply stands in its discussion', async () => {
    const { id } = (await discussion('hello')).json;
    await bot('POST', `${MR}/discussions/${id}/notes`, { body: 'again' });
    const all = (await bot('GET', `${MR}/discussions`)).json;
    expect(all).toHaveLength(1);
    expect(all[0].notes.map((note: { body: string }) => note.body)).toEqual(['hello', 'again']);
  });

  test('quick actions are carried out and taken out of the text', async () => {
    const { json } = await discussion('Looks wrong.\n/label ~bug ~"very bad"\n/close\nBye.');
    expect(json.notes[0].body).toBe('Looks wrong.\nBye.');
    expect(scene.mergeRequest).toMatchObject({ state: 'closed', labels: ['backend', 'bug', 'very bad'] });
    expect(scene.mergeRequest.commands.map(({ name, applied }) => [name, applied])).toEqual([
      ['label', true],
      ['close', true],
    ]);
  });

  test.each([
    ['in the middle of a line', 'please /close this'],
    ['after a blank', ' /close'],
    ['in a fenced block', '```\n/close\n```'],
    ['in a >>> quote', '>>>\n/close\n>>>'],
    ['that nobody knows', '/usr/bin/close'],
  ])('a command %s is not carried out', async (_where, body) => {
    await discussion(body);
    expect(scene.mergeRequest.commands).toEqual([]);
    expect(scene.mergeRequest.discussions[0]?.notes[0]?.body).toBe(body);
  });

  test.each([
    ['in a tilde fence', '~~~\n/close\n~~~'],
    ['in an indented fence', '- x\n  ```\n/close\n  ```'],
    ['behind a carriage return', 'text\n\r/close'],
    ['in capitals', '/CLOSE'],
  ])('a command %s is carried out, as GitLab does', async (_where, body) => {
    await discussion(body);
    expect(scene.mergeRequest.state).toBe('closed');
  });

  test('a note of commands only is not created, and 202 says what they changed', async () => {
    const answer = await bot('POST', `${MR}/notes`, { body: '/close' });
    expect(answer).toMatchObject({ status: 202, json: { commands_changes: { state_event: 'close' } } });
    expect(scene.mergeRequest.discussions).toHaveLength(0);
  });

  test('a discussion of commands only is refused after they were carried out', async () => {
    const answer = await discussion('/close');
    expect(answer.status).toBe(400);
    expect(scene.mergeRequest).toMatchObject({ state: 'closed', discussions: [] });
  });

  test('an edit that leaves commands only deletes the note', async () => {
    const made = (await discussion('hello')).json;
    await bot('PUT', `${MR}/notes/${made.notes[0].id}`, { body: '/close' });
    expect(scene.mergeRequest).toMatchObject({ state: 'closed', discussions: [] });
  });

  test("a reporter's command on another's merge request is taken out and not applied", async () => {
    const token = scene.state.token({ user: scene.users.reporter });
    await as(token)('POST', `${MR}/discussions`, { body: 'hm\n/close' });
    expect(scene.mergeRequest.state).toBe('opened');
    expect(scene.mergeRequest.commands).toMatchObject([{ name: 'close', applied: false }]);
  });

  test('an internal note hides from those below reporter, and a reply to it is internal too', async () => {
    const open = scene.state.project({ path: 'group/open', visibility: 'public' });
    scene.state.mergeRequest(open, { author: scene.users.ada });
    const ownBot = scene.state.projectBot(open, { level: ACCESS.reporter });
    const path = 'projects/group%2Fopen/merge_requests/1';
    const made = await as(ownBot.token)('POST', `${path}/notes`, { body: 'secret', internal: true });
    expect(made.json).toMatchObject({ internal: true, confidential: true, resolvable: false });
    const stranger = as(scene.state.token({ user: scene.users.stranger }));
    expect((await stranger('GET', `${path}/notes`)).json).toEqual([]);
    expect((await stranger('GET', `${path}/discussions`)).json).toEqual([]);
    const [thread] = (await as(ownBot.token)('GET', `${path}/discussions`)).json;
    expect(thread.individual_note).toBe(true);
    const reply = await as(ownBot.token)('POST', `${path}/discussions/${thread.id}/notes`, { body: 'more' });
    expect(reply.json.internal).toBe(true);
  });

  test('an internal note by somebody who may not becomes public without a word', async () => {
    const open = scene.state.project({ path: 'group/open', visibility: 'public' });
    scene.state.mergeRequest(open, { author: scene.users.ada });
    const stranger = as(scene.state.token({ user: scene.users.stranger }));
    const made = await stranger('POST', 'projects/group%2Fopen/merge_requests/1/notes', {
      body: 'x',
      internal: true,
    });
    expect(made).toMatchObject({ status: 201, json: { internal: false } });
  });

  test("nobody below maintainer edits another's note, nobody a system note", async () => {
    const { note } = scene.state.note(scene.mergeRequest, { author: scene.users.ada, body: 'mine' });
    const system = scene.state.note(scene.mergeRequest, {
      author: scene.users.ada,
      body: 'added 1 commit',
      system: true,
    });
    expect((await bot('PUT', `${MR}/notes/${note.id}`, { body: 'yours' })).status).toBe(403);
    const maintainer = as(scene.state.token({ user: scene.users.maintainer }));
    expect((await maintainer('PUT', `${MR}/notes/${note.id}`, { body: 'ours' })).status).toBe(200);
    expect((await maintainer('PUT', `${MR}/notes/${system.note.id}`, { body: 'x' })).status).toBe(403);
  });

  test('a developer resolves a thread, a reporter does not', async () => {
    const { id } = (await discussion('hello')).json;
    const reporter = as(scene.state.token({ user: scene.users.reporter }));
    expect((await reporter('PUT', `${MR}/discussions/${id}`, { resolved: true })).status).toBe(403);
    const resolved = await bot('PUT', `${MR}/discussions/${id}?resolved=true`);
    expect(resolved.json.notes[0]).toMatchObject({ resolved: true, resolved_by: { id: scene.bot.user.id } });
  });

  test('a text over a million characters or without any is refused', async () => {
    expect((await discussion('x'.repeat(1_000_000))).status).toBe(201);
    expect((await discussion('x'.repeat(1_000_001))).json.message).toContain('too long');
    expect((await discussion(' \n ')).json.message).toContain("can't be blank");
  });
});

describe('pages', () => {
  const fill = (count: number) => {
    for (let index = 0; index < count; index++) {
      scene.state.status(scene.project, {
        sha: scene.mergeRequest.sha,
        name: `check-${index}`,
        author: scene.users.ada,
      });
    }
    return `projects/group%2Fapp/repository/commits/${scene.mergeRequest.sha}/statuses`;
  };

  test('a page carries position, totals and links', async () => {
    const { headers, json } = await bot('GET', `${fill(45)}?per_page=20&page=2`);
    expect(json).toHaveLength(20);
    expect(Object.fromEntries(headers)).toMatchObject({
      'x-page': '2',
      'x-per-page': '20',
      'x-next-page': '3',
      'x-prev-page': '1',
      'x-total': '45',
      'x-total-pages': '3',
    });
    expect(headers.get('link')).toMatch(/page=3[^>]*>; rel="next"/);
  });

  test('totals are left out over 10,000 rows', async () => {
    const { headers } = await bot('GET', `${fill(10_001)}?per_page=100`);
    expect(headers.get('x-total')).toBeNull();
    expect(headers.get('x-next-page')).toBe('2');
    expect(headers.get('link')).not.toContain('rel="last"');
  });

  test('a keyset page carries a cursor only', async () => {
    scene.gitlab.paging = 'keyset';
    const { headers } = await bot('GET', `${fill(130)}?per_page=100`);
    expect(headers.get('x-next-page')).toBeNull();
    const next = headers.get('link')?.match(/<([^>]+)>; rel="next"/)?.[1] ?? '';
    const rest = await bot('GET', next.replace(/^.*\/api\/v4\//, ''));
    expect(rest.json).toHaveLength(30);
    expect(rest.headers.get('link')).toBeNull();
  });
});

describe('pipelines and files', () => {
  test('native jobs and outside reports stand in one list of statuses, a job has its trace', async () => {
    const pipeline = scene.state.pipeline(scene.project, {
      user: scene.users.ada,
      mergeRequest: scene.mergeRequest,
    });
    const job = scene.state.job(pipeline, { name: 'unit', trace: '\u001b[31mfailed\u001b[0m' });
    scene.state.status(scene.project, {
      sha: scene.mergeRequest.sha,
      name: 'konflux',
      author: scene.bot.user,
      status: 'failed',
    });
    const { json } = await bot(
      'GET',
      `projects/group%2Fapp/repository/commits/${scene.mergeRequest.sha}/statuses`,
    );
    expect(json.map((row: { name: string }) => row.name)).toEqual(['unit', 'konflux']);
    expect(json[0].target_url).toMatch(new RegExp(`/-/jobs/${job.id}$`));
    expect((await bot('GET', `projects/group%2Fapp/jobs/${job.id}/trace`)).text).toBe(
      '\u001b[31mfailed\u001b[0m',
    );
    expect((await bot('GET', MR)).json.head_pipeline).toMatchObject({ id: pipeline.id, status: 'failed' });
  });

  test('a file and an archive are served at a ref', async () => {
    scene.state.file(scene.project, 'main', 'src/a b.ts', 'export {};\n');
    const file = await bot('GET', 'projects/group%2Fapp/repository/files/src%2Fa%20b.ts/raw?ref=main');
    expect(file.text).toBe('export {};\n');
    expect((await bot('GET', 'projects/group%2Fapp/repository/files/none/raw?ref=main')).status).toBe(404);
    expect((await bot('GET', 'projects/group%2Fapp/repository/archive.tar.gz?sha=main')).status).toBe(200);
  });

  test('changes say that they are not all there is', async () => {
    scene.mergeRequest.diffs = [
      scene.state.diff({ newPath: 'a', diff: '@@ -1 +1 @@' }),
      scene.state.diff({ newPath: 'b', diff: 'x', tooLarge: true }),
    ];
    scene.mergeRequest.overflow = true;
    const { json } = await bot('GET', `${MR}/changes`);
    expect(json).toMatchObject({
      changes_count: '2+',
      overflow: true,
      changes: [{ diff: '@@ -1 +1 @@' }, { diff: '', too_large: true }],
    });
  });
});

describe('faults', () => {
  const post = () => bot('POST', `${MR}/discussions`, { body: 'hello' });

  test('a request lost on its way has done nothing', async () => {
    scene.gitlab.faults.add({ method: 'POST', path: /discussions$/, dropBeforeHandling: true });
    await expect(post()).rejects.toThrow();
    expect(scene.mergeRequest.discussions).toHaveLength(0);
  });

  test('an answer lost on its way has done its work', async () => {
    scene.gitlab.faults.add({ method: 'POST', path: /discussions$/, dropAfterHandling: true });
    await expect(post()).rejects.toThrow();
    expect(scene.mergeRequest.discussions).toHaveLength(1);
    expect(scene.gitlab.requests.at(-1)).toMatchObject({
      method: 'POST',
      status: undefined,
      tokenKind: 'project',
    });
  });

  test('a rate limit with Retry-After hits as often as asked', async () => {
    scene.gitlab.faults.add({
      path: /^user/,
      status: 429,
      headers: { 'retry-after': '3' },
      times: 2,
      skip: 1,
    });
    const statuses = [];
    for (let index = 0; index < 4; index++) statuses.push((await bot('GET', 'user')).status);
    expect(statuses).toEqual([200, 429, 429, 200]);
  });

  test('a body can end in the middle', async () => {
    scene.gitlab.faults.add({ path: /^user/, closeMidBody: true });
    await expect(bot('GET', 'user')).rejects.toThrow();
  });
});

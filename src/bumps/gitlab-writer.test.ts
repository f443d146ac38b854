import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { aScene } from '../../test/fakes/gitlab/scene.ts';
import type { Bump, BumpWriter } from '../delivery/port.ts';
import { createHttpClient, type HttpClient } from '../http/client.ts';
import { actionToken } from '../settings/tokens.ts';
import { createBumpWriter } from './gitlab-writer.ts';

const VALUES = 'apps/web/values.yaml';
const OTHER = 'apps/other.yaml';
const MESSAGE = 'Repair the bump\n\nHummingbird-Run: uid-1\n';
/** Of tests: nobody waits. */
const clock = { now: Date.now, random: () => 0, sleep: async () => {} };

let scene: Awaited<ReturnType<typeof aScene>>;
let http: HttpClient;
let writer: BumpWriter;
let bump: Bump;

beforeEach(async () => {
  scene = await aScene();
  http = createHttpClient({ clock });
  const { state, project, users } = scene;
  state.commit(project, { branch: 'main', files: { [VALUES]: 'tag: 1.0.0\r\n', [OTHER]: 'a: 1\n' } });
  state.commit(project, { branch: 'bump/web', from: 'main', files: { [VALUES]: 'tag: 2.0.0\r\n' } });
  const made = state.mergeRequest(project, { author: users.ada, sourceBranch: 'bump/web', labels: ['deps'] });
  bump = {
    project: 'group/app',
    iid: made.iid,
    title: made.title,
    headSha: made.sha,
    baseSha: made.baseSha,
    sourceBranch: 'bump/web',
    targetBranch: 'main',
    labels: ['deps'],
    fork: false,
  };
  writer = writerWith(scene.bot.token);
});
afterEach(async () => {
  expect(scene.gitlab.violations).toEqual([]);
  await http.close();
  await scene.gitlab.stop();
});

const writerWith = (token: string): BumpWriter =>
  createBumpWriter({
    http,
    baseUrl: scene.gitlab.url,
    project: 'group/app',
    token: actionToken(token),
    clock,
  });

const repair = (files: Readonly<Record<string, string>> = { [VALUES]: 'tag: 2.0.1\r\n' }) => ({
  message: MESSAGE,
  files: Object.entries(files).map(([path, text]) => ({ path, bytes: Buffer.from(text) })),
  expectedHead: bump.headSha,
});

const textAt = (ref: string, path: string): string | undefined => {
  const entry = scene.project.repository.at(ref)?.tree.get(path);
  return entry !== undefined && 'bytes' in entry ? Buffer.from(entry.bytes).toString() : undefined;
};
const posts = () =>
  scene.gitlab.requests.filter(({ method, path }) => method === 'POST' && /commits$/.test(path));

describe('commit', () => {
  it('writes all files by one commit on the head, every byte as it is', async () => {
    const outcome = await writer.commit(bump, repair({ [VALUES]: 'tag: "2.0.1" # ü\r\n', [OTHER]: 'a: 2' }));
    const head = scene.project.repository.at('bump/web');
    expect(outcome).toEqual({ kind: 'Committed', sha: head?.sha });
    expect(head).toMatchObject({ parents: [bump.headSha], message: MESSAGE });
    expect(textAt('bump/web', VALUES)).toBe('tag: "2.0.1" # ü\r\n');
    expect(textAt('bump/web', OTHER)).toBe('a: 2');
    expect(textAt('main', OTHER)).toBe('a: 1\n');
    expect(posts()).toHaveLength(1);
  });

  it('keeps the mode of a file', async () => {
    const { state, project } = scene;
    const files = { 'run.sh': { bytes: Buffer.from('a'), executable: true } };
    const { sha } = state.commit(project, { branch: 'bump/web', files });
    await writer.commit({ ...bump, headSha: sha }, { ...repair({ 'run.sh': 'b' }), expectedHead: sha });
    expect(project.repository.at('bump/web')?.tree.get('run.sh')).toMatchObject({ executable: true });
  });

  it('writes nothing over a newer push', async () => {
    const newer = scene.state.commit(scene.project, { branch: 'bump/web', files: { [OTHER]: 'a: 3\n' } });
    const outcome = await writer.commit(bump, repair());
    expect(outcome).toMatchObject({ kind: 'Moved' });
    expect(outcome.kind === 'Moved' && outcome.message).toContain(`bump/web is at ${newer.sha.slice(0, 12)}`);
    expect(posts()).toEqual([]);
    expect(scene.project.repository.at('bump/web')?.sha).toBe(newer.sha);
  });

  it('lets GitLab refuse when one of the files is pushed between the look and the commit', async () => {
    const newer = pushBetween({ [VALUES]: 'tag: 3.0.0\r\n' });
    expect(await writer.commit(bump, repair())).toMatchObject({ kind: 'Moved' });
    expect(posts()).toHaveLength(1);
    expect(scene.project.repository.at('bump/web')?.sha).toBe(newer());
  });

  it('says on what it stands when other files are pushed in that moment, and keeps them', async () => {
    const newer = pushBetween({ [OTHER]: 'a: 3\n' });
    const outcome = await writer.commit(bump, repair());
    expect(outcome).toMatchObject({ kind: 'Committed', onto: newer() });
    expect(textAt('bump/web', OTHER)).toBe('a: 3\n');
    expect(textAt('bump/web', VALUES)).toBe('tag: 2.0.1\r\n');
  });

  it.each(['dropBeforeHandling', 'dropAfterHandling'] as const)(
    'makes one commit over a request with %s',
    async (fault) => {
      scene.gitlab.faults.add({ method: 'POST', path: /repository\/commits$/, [fault]: true });
      const outcome = await writer.commit(bump, repair());
      const head = scene.project.repository.at('bump/web');
      expect(outcome).toEqual({ kind: 'Committed', sha: head?.sha });
      expect(head?.parents).toEqual([bump.headSha]);
      expect(posts()).toHaveLength(fault === 'dropBeforeHandling' ? 2 : 1);
    },
  );

  it('is not made again by another process, whose merge request does not show it yet', async () => {
    const first = await writer.commit(bump, repair());
    expect(await writer.commit(bump, repair())).toEqual(first);
    expect(posts()).toHaveLength(1);
  });

  it('throws when GitLab stays away', async () => {
    scene.gitlab.faults.add({ method: 'POST', path: /repository\/commits$/, status: 503, times: Infinity });
    await expect(writer.commit(bump, repair())).rejects.toMatchObject({ name: 'HttpError', status: 503 });
    expect(posts()).toHaveLength(4);
  });

  it('reports a protected branch as refused', async () => {
    scene.project.repository.protectedBranches.add('bump/web');
    const outcome = await writer.commit(bump, repair());
    expect(outcome).toMatchObject({ kind: 'Refused', status: 403 });
    expect(outcome.kind === 'Refused' && outcome.message).toMatch(/not allowed to push into this branch/);
  });

  it('reports a hook that refuses, with its words', async () => {
    const body = '{"message":"Commit message does not follow the pattern"}';
    scene.gitlab.faults.add({ method: 'POST', path: /repository\/commits$/, status: 400, body });
    const outcome = await writer.commit(bump, repair());
    expect(outcome).toMatchObject({ kind: 'Refused', status: 400 });
    expect(outcome.kind === 'Refused' && outcome.message).toMatch(/does not follow the pattern/);
  });

  it('reports a branch that is gone, and a file that is not there', async () => {
    expect(await writer.commit(bump, repair({ 'no/such.yaml': 'a: 1' }))).toMatchObject({
      kind: 'Refused',
      status: 404,
    });
    scene.project.repository.branches.delete('bump/web');
    expect(await writer.commit(bump, repair())).toMatchObject({ kind: 'Refused', status: 404 });
    expect(posts()).toEqual([]);
  });

  it('never writes the branch of a fork', async () => {
    expect(await writer.commit({ ...bump, fork: true }, repair())).toMatchObject({ kind: 'Refused' });
    expect(scene.gitlab.requests).toEqual([]);
  });

  it('writes to its own project only', async () => {
    await expect(writer.commit({ ...bump, project: 'group/other' }, repair())).rejects.toThrow('group/other');
    expect(scene.gitlab.requests).toEqual([]);
  });

  /** Somebody pushes while our POST is on its way. */
  function pushBetween(files: Readonly<Record<string, string>>): () => string | undefined {
    const { repository } = scene.project;
    const { branches } = repository;
    let pushed: string | undefined;
    const get = branches.get.bind(branches);
    // The look at the branch is the first to ask for its head; the next one comes with our commit.
    branches.get = (name) => {
      const head = get(name);
      if (name === 'bump/web' && pushed === undefined) {
        pushed = 'coming';
        pushed = scene.state.commit(scene.project, { branch: 'bump/web', files }).sha;
      }
      return head;
    };
    return () => pushed;
  }
});

describe('ownCommit', () => {
  it('finds the commit whose message carries the trailer, among all that the merge request has', async () => {
    expect(await writer.ownCommit(bump, 'Hummingbird-Run: uid-1')).toBeUndefined();
    const outcome = await writer.commit(bump, repair());
    for (let index = 0; index < 120; index += 1)
      scene.state.commit(scene.project, { branch: 'bump/web', files: { [OTHER]: `a: ${index}\n` } });
    expect(await writer.ownCommit(bump, 'Hummingbird-Run: uid-1')).toBe(
      outcome.kind === 'Committed' ? outcome.sha : 'none',
    );
    expect(await writer.ownCommit(bump, 'Hummingbird-Run: uid-11')).toBeUndefined();
    expect(await writer.ownCommit(bump, 'Hummingbird-Run: uid')).toBeUndefined();
  });

  it.each(['Quotes Hummingbird-Run: uid-1', 'Hummingbird-Run: uid-1'])(
    'takes no title for a trailer: %s',
    async (message) => {
      scene.state.commit(scene.project, { branch: 'bump/web', message, files: { [OTHER]: 'a: 4\n' } });
      expect(await writer.ownCommit(bump, 'Hummingbird-Run: uid-1')).toBeUndefined();
    },
  );
});

describe('addLabels', () => {
  const labels = () => scene.project.mergeRequests.get(bump.iid)?.labels;

  it('keeps what is there, and may be said twice', async () => {
    await writer.addLabels(bump, ['hummingbird/attempt-1', 'needs-human']);
    await writer.addLabels(bump, ['needs-human']);
    expect(labels()).toEqual(['deps', 'hummingbird/attempt-1', 'needs-human']);
  });

  it('throws when GitLab drops them without a word', async () => {
    scene.state.member(scene.project, scene.bot.user, 20);
    scene.gitlab.faults.add({
      method: 'PUT',
      path: /merge_requests/,
      status: 200,
      body: '{"labels":["deps"]}',
    });
    await expect(writer.addLabels(bump, ['needs-human'])).rejects.toThrow(
      'GitLab did not add the label needs-human; give the bot the Developer role',
    );
  });
});

describe('setStatus', () => {
  const statuses = () =>
    scene.project.statuses.map(({ sha, ref, name, status, description }) => ({
      sha,
      ref,
      name,
      status,
      description,
    }));

  it('goes from pending to success on the head, by its branch', async () => {
    await writer.setStatus(bump, { state: 'pending', name: 'bumps', description: 'reading' });
    await writer.setStatus(bump, { state: 'success', name: 'bumps', description: 'fixed' });
    expect(statuses()).toEqual([
      { sha: bump.headSha, ref: 'bump/web', name: 'bumps', status: 'success', description: 'fixed' },
    ]);
  });

  it('takes the state that is there already for set', async () => {
    for (const state of ['pending', 'pending', 'success', 'success'] as const)
      await writer.setStatus(bump, { state, name: 'bumps', description: 'x' });
    expect(statuses()).toHaveLength(1);
  });

  it('throws what else GitLab refuses', async () => {
    scene.gitlab.faults.add({ method: 'POST', path: /statuses/, status: 400, body: '{"message":"no"}' });
    const setting = writer.setStatus(bump, { state: 'pending', name: 'bumps', description: 'x' });
    await expect(setting).rejects.toMatchObject({ status: 400 });
  });

  it('clips a description to what GitLab keeps', async () => {
    await writer.setStatus(bump, { state: 'success', name: 'bumps', description: '🐦'.repeat(300) });
    const [status] = statuses();
    expect([...(status?.description ?? '')].length).toBeLessThanOrEqual(255);
    expect(status?.description).toMatch(/^(🐦)+…$/u);
  });

  it('goes without one on a fork, whose commit is on no branch here', async () => {
    scene.gitlab.faults.add({ method: 'POST', path: /statuses/, status: 404 });
    await writer.setStatus({ ...bump, fork: true }, { state: 'success', name: 'bumps', description: 'x' });
    expect(scene.gitlab.requests.at(-1)?.body).not.toContain('ref');
  });
});

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { aScene } from '../../../test/fakes/gitlab/scene.ts';
import type { BumpReader } from '../../delivery/port.ts';
import { createHttpClient, type HttpClient } from '../../http/client.ts';
import { toolToken } from '../../settings/tokens.ts';
import { createBumpReader } from './reader.ts';

const clock = { now: Date.now, random: () => 0, sleep: async () => {} };
let scene: Awaited<ReturnType<typeof aScene>>;
let http: HttpClient;
let reader: BumpReader;

beforeEach(async () => {
  scene = await aScene();
  http = createHttpClient({ clock });
  const { token } = scene.state.projectBot(scene.project, { scopes: ['read_api'], level: 20 });
  reader = readerWith(token);
});
afterEach(async () => {
  expect(scene.gitlab.violations).toEqual([]);
  await http.close();
  await scene.gitlab.stop();
});

const readerWith = (token: string): BumpReader =>
  createBumpReader({ http, baseUrl: scene.gitlab.url, token: toolToken(token), clock });

/** Main moves on after the branch was made. */
function aBumpBranch() {
  const { state, project, users } = scene;
  const base = state.commit(project, { branch: 'main', files: { 'a.yaml': 'a: 1\n' } });
  const head = state.commit(project, { branch: 'bump', from: 'main', files: { 'a.yaml': 'a: 2\n' } });
  const later = state.commit(project, { branch: 'main', files: { 'b.yaml': 'b: 1\n' } });
  const { iid } = state.mergeRequest(project, {
    author: users.ada,
    sourceBranch: 'bump',
    title: 'Move web to 2',
    labels: ['deps'],
  });
  return { base: base.sha, head: head.sha, later: later.sha, at: { project: 'group/app', iid } };
}

describe('bump', () => {
  it('is what GitLab has now, its base the newest commit that both have', async () => {
    const { at, base, head } = aBumpBranch();
    expect(await reader.bump(at)).toEqual({
      kind: 'Bump',
      bump: {
        ...at,
        title: 'Move web to 2',
        headSha: head,
        baseSha: base,
        sourceBranch: 'bump',
        targetBranch: 'main',
        labels: ['deps'],
        fork: false,
      },
    });
  });

  it('has another base once the target was merged into it', async () => {
    const { at, later } = aBumpBranch();
    scene.state.commit(scene.project, { branch: 'bump', merges: [later], files: { 'b.yaml': 'b: 1\n' } });
    expect(await reader.bump(at)).toMatchObject({ kind: 'Bump', bump: { baseSha: later } });
  });

  it.each(['another project', 'a project that is gone'])(
    'is a fork when its branch is of %s',
    async (where) => {
      const { at, base, head } = aBumpBranch();
      const fork = scene.state.project({ path: 'ada/app', visibility: 'public' });
      const mergeRequest = scene.project.mergeRequests.get(at.iid);
      if (mergeRequest) mergeRequest.sourceProject = where === 'another project' ? fork : null;
      expect(await reader.bump(at)).toMatchObject({ bump: { fork: true, headSha: head, baseSha: base } });
    },
  );

  it.each<[string, (iid: number) => void, RegExp]>([
    ['that is not there', (iid) => scene.project.mergeRequests.delete(iid), /404/],
    [
      'whose target is gone',
      () => scene.project.repository.branches.delete('main'),
      /shares no commit with main/,
    ],
  ])('is refused for one %s', async (_, change, message) => {
    const { at } = aBumpBranch();
    change(at.iid);
    const reading = await reader.bump(at);
    expect(reading.kind === 'Refused' && reading.message).toMatch(message);
  });

  it('is refused when nothing is shared with the target', async () => {
    const { at } = aBumpBranch();
    const { repository } = scene.project;
    scene.state.commit(scene.project, { branch: 'orphan', files: { 'c.yaml': 'c' } });
    const mergeRequest = scene.project.mergeRequests.get(at.iid);
    if (mergeRequest) mergeRequest.sha = repository.branches.get('orphan') ?? '';
    expect(await reader.bump(at)).toMatchObject({ kind: 'Refused' });
  });

  it('is refused for a token that sees nothing, and throws while GitLab is away', async () => {
    const { at } = aBumpBranch();
    const stranger = scene.state.token({ user: scene.users.stranger });
    expect(await readerWith(stranger).bump(at)).toMatchObject({ kind: 'Refused' });
    scene.gitlab.faults.add({ path: /merge_requests/, status: 502, times: Infinity });
    await expect(reader.bump(at)).rejects.toMatchObject({ name: 'HttpError', status: 502 });
  });
});

describe('tree', () => {
  it('shows files, modes and links at a commit', async () => {
    const { sha } = scene.state.commit(scene.project, {
      branch: 'main',
      files: {
        'apps/web.yaml': 'a: 1\n',
        'run.sh': { bytes: Buffer.from('#!'), executable: true },
        link: { symlink: '../out' },
        'charts/sub': { submodule: 'f'.repeat(40) },
      },
    });
    scene.state.commit(scene.project, { branch: 'main', files: { 'apps/web.yaml': 'a: 2\n' } });
    const tree = await reader.tree('group/app', sha);
    expect(tree).toMatchObject({ sha, paths: ['apps/web.yaml', 'link', 'run.sh'] });
    expect(tree.entry('apps/web.yaml')).toMatchObject({
      kind: 'File',
      bytes: new TextEncoder().encode('a: 1\n'),
    });
    expect(tree.entry('run.sh')).toMatchObject({ executable: true });
    expect(tree.entry('link')).toEqual({ kind: 'Symlink', target: '../out' });
  });

  it('begins anew when the archive breaks off', async () => {
    const { head } = aBumpBranch();
    scene.gitlab.faults.add({ path: /archive/, closeMidBody: true, times: 2 });
    expect((await reader.tree('group/app', head)).paths).toEqual(['a.yaml']);
    expect(scene.gitlab.requests.filter(({ path }) => path.includes('archive'))).toHaveLength(3);
  });

  it('is not available where GitLab refuses', async () => {
    await expect(reader.tree('group/app', 'e'.repeat(40))).rejects.toThrow(
      /^The archive of eeeeeeeeeeee is not given/,
    );
    await expect(reader.tree('group/app', 'e'.repeat(40))).rejects.toMatchObject({
      name: 'TreeUnavailableError',
    });
  });

  it('stops when it is told to', async () => {
    const { head } = aBumpBranch();
    const reason = new Error('cancelled');
    await expect(reader.tree('group/app', head, AbortSignal.abort(reason))).rejects.toBe(reason);
  });
});

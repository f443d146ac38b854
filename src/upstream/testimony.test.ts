import { afterEach, describe, expect, it } from 'vitest';
import { aReport } from '../../test/builders/gate-report.ts';
import { type FakeUpstream, startUpstream, type UpstreamServer } from '../../test/fakes/upstream/server.ts';
import type { ApplicationReport } from '../delivery/gate/report.ts';
import { createHttpClient } from '../http/client.ts';
import { createTestimony, type TestimonyOptions } from './testimony.ts';

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

async function aWorld(repositories: Readonly<Record<string, FakeUpstream>>) {
  const server = await startUpstream(repositories);
  const http = createHttpClient({ limits: { retry: { attempts: 1 } } });
  open.push(server, http);
  const read = (
    application: Partial<ApplicationReport>,
    subjects: readonly string[] = ['native-bgp'],
    options: Partial<TestimonyOptions> = {},
  ) =>
    createTestimony({
      http,
      enabled: true,
      maxReleases: 5,
      maxCommits: 10,
      maxBodyChars: 4000,
      within: { below: [server.url], reach: 'Loopback' },
      hosts: new Map([
        ['github.com', { kind: 'GitHub', api: server.github }],
        ['gitlab.example.org', { kind: 'GitLab', api: server.gitlab }],
      ]),
      ...options,
    })(aReport(application), subjects);
  return { server, read };
}

const onGitHub = (path = 'metallb/web', named = true) => ({
  sources: [{ url: `https://github.com/${path}`, named }],
});
const onGitLab = (path: string) => ({
  sources: [{ url: `https://gitlab.example.org/${path}`, named: true }],
});
const paths = ({ requests }: UpstreamServer) => requests.map(({ path }) => path.replace(/[?&].*$/, ''));
const sha = (index: number) => String(index).padStart(40, '0');
const release = (tag: string, body = `Words on ${tag}`) => ({ tag, body });

describe('release notes', () => {
  it('are those after the old version up to the new one, the newest first, compared by version', async () => {
    const releases = ['v2.1.0', 'v1.10.0', 'v2.0.0', 'v1.9.0', 'v1.0.0', 'v2.0.0-rc.1'].map((tag) =>
      release(tag),
    );
    const { read } = await aWorld({ 'metallb/web': { releases } });
    const { notes } = await read(onGitHub(), []);
    expect(notes?.match(/^## .*/gm)).toEqual([
      '## github.com/metallb/web v2.0.0',
      '## github.com/metallb/web v1.10.0',
      '## github.com/metallb/web v1.9.0',
    ]);
    expect(notes).toContain('Words on v1.10.0');
  });

  it('are bounded in number and length, which they say', async () => {
    const releases = ['v2.0.0', 'v1.3.0', 'v1.2.0', 'v1.1.0'].map((tag) =>
      release(tag, `${tag} ${'x'.repeat(100)}`),
    );
    const { read } = await aWorld({ 'metallb/web': { releases } });
    const { notes } = await read(onGitHub(), [], { maxReleases: 2, maxBodyChars: 20 });
    expect(notes).toContain('(cut after 20 of 107 characters)');
    expect(notes).toContain('(2 older releases in between are not shown.)');
    expect(notes).not.toContain('v1.2.0');
  });

  it('of a repository of many charts are those of the chart, by its own version', async () => {
    const releases = [release('other-2.0.0'), release('web-2.0.0'), release('web-1.0.0')];
    const { read } = await aWorld({ 'metallb/web': { releases } });
    const { notes } = await read(onGitHub('metallb/web/tree/main/charts/web'), []);
    expect(notes?.match(/^## .*/gm)).toEqual(['## github.com/metallb/web web-2.0.0']);
  });

  it('of the application’s own repository are told by appVersion', async () => {
    const releases = ['v0.15.0', 'v0.14.0'].map((tag) => release(tag));
    const { read } = await aWorld({ 'metallb/web': { releases } });
    const chart = { repository: 'https://charts.example.org', chart: 'web' };
    const versions = {
      base: { ...chart, version: '1.0.0', appVersion: '0.14.0' },
      head: { ...chart, version: '2.0.0', appVersion: 'v0.15.0' },
    };
    expect((await read({ ...onGitHub(), ...versions }, [])).notes).toContain('Words on v0.15.0');
  });

  it('come from GitLab too, from a project however deep', async () => {
    const { read, server } = await aWorld({
      'a/b/web': { releases: [release('v2.0.0'), release('v1.0.0')] },
    });
    expect((await read(onGitLab('a/b/web.git'), [])).notes).toContain('Words on v2.0.0');
    expect((await read(onGitLab('a/b/web/-/tree/main'), [])).notes).toContain('Words on v2.0.0');
    expect(server.violations).toEqual([]);
    expect(server.requests.some(({ authorized }) => authorized)).toBe(false);
  });

  it('keep no control or direction characters, and no name beyond its line', async () => {
    const odd = { tag: 'v2.0.0', name: 'a\n## forged', body: 'a\u0000b\u202ec\r\nd' };
    const { read } = await aWorld({ 'metallb/web': { releases: [odd, release('v1.0.0')] } });
    expect((await read(onGitHub(), [])).notes).toBe(
      '## github.com/metallb/web v2.0.0: a ## forged\n\nabc\nd',
    );
  });
});

describe('commits', () => {
  const tags = ['v2.0.0', 'v1.0.0', 'v0.9.0'];
  const commits = (count: number, message: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => ({ sha: sha(index), message: message(index) }));

  it('that mention what the report names are shown by their first line', async () => {
    const compared = {
      commits: commits(3, (index) => (index === 1 ? 'Turn nativeBGP on\n\nlong words' : 'Other')),
      files: ['charts/native_bgp.yaml', 'README.md'],
    };
    const { read } = await aWorld({ 'metallb/web': { tags, comparisons: { 'v1.0.0...v2.0.0': compared } } });
    expect((await read(onGitHub())).commits?.split('\n')).toEqual([
      'github.com/metallb/web v1.0.0...v2.0.0: 3 commits, 1 mentions what the report names.',
      '- 000000000000 Turn nativeBGP on',
      'Changed files that are named so (1):',
      '- charts/native_bgp.yaml',
    ]);
  });

  it('that all say nothing of it are a finding', async () => {
    const compared = { commits: commits(2, () => 'Other') };
    const { read } = await aWorld({ 'a/web': { tags, comparisons: { 'v1.0.0...v2.0.0': compared } } });
    expect((await read(onGitLab('a/web'))).commits).toBe(
      'gitlab.example.org/a/web v1.0.0...v2.0.0: 2 commits, none mentions what the report names.',
    );
  });

  it('that the host leaves out, and those that we do, are told apart', async () => {
    const compared = { commits: commits(400, (index) => `native-bgp ${index}`) };
    const repository = { tags, comparisons: { 'v1.0.0...v2.0.0': compared } };
    const { read } = await aWorld({ 'metallb/web': repository, 'a/web': repository });
    const head = async (application: Partial<ApplicationReport>) =>
      (await read(application, ['native-bgp'], { maxCommits: 3 })).commits?.split('\n');
    const github = await head(onGitHub());
    expect(github?.[0]).toBe(
      'github.com/metallb/web v1.0.0...v2.0.0: 250 commits looked at, of 400 (truncated by the host), 250 mention what the report names, the first 3 are shown.',
    );
    expect(github).toHaveLength(4);
    expect((await head(onGitLab('a/web')))?.[0]).toContain(
      '300 commits looked at, of more (truncated by the host)',
    );
  });

  it('are compared from the newest tag that is not after the old version', async () => {
    const chart = { repository: 'https://charts.example.org', chart: 'web' };
    const compared = { commits: commits(1, () => 'Other') };
    const { read } = await aWorld({ 'metallb/web': { tags, comparisons: { 'v0.9.0...v2.0.0': compared } } });
    const base = { ...chart, version: '0.9.5' };
    expect((await read({ ...onGitHub(), base })).commits).toContain('v0.9.0...v2.0.0: 1 commit, none');
  });

  it('are not asked for when the report names nothing', async () => {
    const { read, server } = await aWorld({ 'metallb/web': { releases: [release('v2.0.0')] } });
    await read(onGitHub(), []);
    expect(paths(server)).toEqual(['/github/repos/metallb/web/releases']);
  });
});

describe('silence', () => {
  it.each<[string, Partial<ApplicationReport>, Partial<TestimonyOptions>, RegExp]>([
    ['it is switched off', onGitHub(), { enabled: false }, /switched off/],
    ['the chart declares nothing', {}, {}, /declares no source repository/],
    ['no host is known', { sources: [{ url: 'https://web.example.org/a/b', named: true }] }, {}, /neither/],
    [
      'the repository names no such host',
      onGitHub('metallb/web', false),
      {},
      /no file of the repository names github.com/,
    ],
    [
      'a user stands in the address',
      { sources: [{ url: 'https://u:p@github.com/a/b', named: true }] },
      {},
      /neither/,
    ],
    [
      'the address is a host’s own page',
      { sources: [{ url: 'https://github.com/a', named: true }] },
      {},
      /neither/,
    ],
    ['no version moves', { ...onGitHub(), head: aReport().applications[0]?.base }, {}, /no chart moves/],
  ])('is all that there is when %s, and nothing is asked', async (_, application, options, why) => {
    const { read, server } = await aWorld({ 'metallb/web': {} });
    const told = await read(application, ['native-bgp'], options);
    expect(told.silence).toMatch(why);
    expect(told.notes ?? told.commits).toBeUndefined();
    expect(server.requests).toEqual([]);
  });

  it('is broken by a host that settings allow', async () => {
    const { read } = await aWorld({ 'metallb/web': { releases: [release('v2.0.0')] } });
    const told = await read(onGitHub('metallb/web', false), [], { allowedHosts: ['github.com'] });
    expect(told.notes).toContain('Words on v2.0.0');
  });

  it('says that there are no tags, and that a host answers nothing, in no words of the host', async () => {
    const { read, server } = await aWorld({ 'metallb/web': { tags: ['v7.0.0'] } });
    expect((await read(onGitHub())).silence).toBe('github.com/metallb/web has no tags for the two versions');
    expect((await read(onGitHub('metallb/gone'))).silence).toMatch(
      /could not be read to the end: it answers 404$/,
    );
    server.fail = 403;
    const { silence } = await read(onGitHub());
    expect(silence).toMatch(/it answers 403, as it does to too many requests without a login$/);
    expect(silence).not.toContain('192.0.2.7');
  });

  it('keeps the notes when the commits fail', async () => {
    const releases = [release('v2.0.0'), release('v1.0.0')];
    const { read } = await aWorld({ 'metallb/web': { releases } });
    const told = await read(onGitHub());
    expect(told.notes).toContain('Words on v2.0.0');
    expect(told.commits).toMatch(/^No commits were compared: .*it answers 404\.$/);
    expect(told.silence).toBeUndefined();
  });

  it('is kept towards addresses that are not public', async () => {
    const { read, server } = await aWorld({ 'metallb/web': {} });
    const told = await createTestimony({
      http: createHttpClient({ limits: { retry: { attempts: 1 } } }),
      enabled: true,
      maxReleases: 5,
      maxCommits: 10,
      maxBodyChars: 4000,
      hosts: new Map([['github.com', { kind: 'GitHub', api: server.url.replace('http:', 'https:') }]]),
    })(aReport(onGitHub()), []);
    expect(told.silence).toMatch(/its address is not public/);
    expect(server.requests).toEqual([]);
    await read({}, []);
  });
});

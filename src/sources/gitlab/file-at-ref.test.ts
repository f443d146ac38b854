import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { gitlabToolsOn, readStream } from '../../../test/builders/gitlab-tools.ts';

let on: Awaited<ReturnType<typeof gitlabToolsOn>>;
beforeEach(async () => {
  on = await gitlabToolsOn();
});
afterEach(async () => {
  expect(on.gitlab.violations).toEqual([]);
  await on.stop();
});

const call = (path: string, ref = on.mergeRequest.sha, project = 'group/app') =>
  on.call('gitlab_get_file_at_ref', { project, path, ref });
const put = (path: string, content: string | Uint8Array, ref = on.mergeRequest.sha) =>
  on.state.file(on.project, ref, path, content);

describe('a file', () => {
  test('comes byte for byte under its own ending', async () => {
    put('src/dir with blank/é.ts', 'export {};\r\n\ufeff');
    const output = await call('src/dir with blank/é.ts');
    expect(output).toMatchObject({ kind: 'Stream', suffix: '.ts', binary: false });
    expect(await readStream(output)).toMatchObject({
      text: 'export {};\r\n\ufeff',
      incomplete: undefined,
      note: undefined,
    });
  });

  test.each([
    ['Makefile', '.txt'],
    ['.gitignore', '.txt'],
    ['a/.env.sample', '.sample'],
    ['odd.x/y z', '.txt'],
  ])('of the name %s is kept as %s', async (path, suffix) => {
    put(path, 'x');
    expect(await call(path)).toMatchObject({ suffix });
  });

  test('that is binary is said to be', async () => {
    const bytes = Buffer.concat([Buffer.from('PNG'.repeat(1000)), Buffer.from([0, 255, 254])]);
    put('logo.png', bytes);
    const output = await call('logo.png');
    expect(output).toMatchObject({ suffix: '.png', binary: true });
    expect(await readStream(output)).toMatchObject({ bytes, note: 'The file is binary.' });
  });

  test('in another encoding is a text', async () => {
    put('latin1.txt', Buffer.from('Gr\u00fc\u00dfe', 'latin1'));
    expect(await call('latin1.txt')).toMatchObject({ binary: false });
  });

  test('that is a pointer of Git LFS is said to be', async () => {
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'4'.repeat(64)}\nsize 12345\n`;
    put('model.bin', pointer);
    const read = await readStream(await call('model.bin'));
    expect(read.text).toBe(pointer);
    expect(read.note).toMatch(/^This is the pointer of a file of 12345 bytes in Git LFS/);
  });

  test('that tells of Git LFS is no pointer', async () => {
    put('README.md', 'version https://git-lfs.github.com/spec/v1\nis how pointers begin.\n');
    expect((await readStream(await call('README.md'))).note).toBeUndefined();
  });

  test('that is empty is said to be', async () => {
    put('__init__.py', '');
    expect(await readStream(await call('__init__.py'))).toMatchObject({
      text: '',
      note: 'The file is empty.',
      incomplete: undefined,
    });
  });

  test('of 40 MB flows', async () => {
    put('big.csv', Buffer.alloc(40_000_000, 'a,b\n'));
    const output = await call('big.csv');
    let bytes = 0;
    if (output.kind === 'Stream') for await (const chunk of output.chunks) bytes += chunk.length;
    expect(bytes).toBe(40_000_000);
  });

  test.each([100, 200_000])('of %i bytes that breaks off keeps what came and says so', async (size) => {
    put('a.txt', 'x'.repeat(size));
    on.gitlab.faults.add({ path: /files/, closeMidBody: true });
    const read = await readStream(await call('a.txt'));
    expect(read.text).toMatch(/^x*$/);
    expect(read.incomplete).toMatch(new RegExp(`^The file broke off after ${read.bytes.length} bytes \\(`));
    expect(read.note).toBeUndefined();
  });

  test('that is not there is an answer that says what to do', async () => {
    expect(await call('none')).toMatchObject({
      kind: 'Error',
      message: expect.stringMatching(/404 Commit Not Found.*do not guess others/),
    });
  });

  test('in whose place a login page comes is an error', async () => {
    put('a.txt', 'x');
    const page = { status: 200, headers: { 'content-type': 'text/html; charset=utf-8' }, body: '<html>' };
    on.gitlab.faults.add({ path: /files/, ...page });
    expect(await call('a.txt')).toMatchObject({ kind: 'Error', message: expect.stringContaining('login') });
  });
});

test.each(['../x', 'a/../../x', './a', '/etc/passwd', 'a//b', 'dir/', 'a\0b', '..', '.'])(
  'the path %j is refused without asking GitLab',
  async (path) => {
    expect(await call(path)).toMatchObject({ kind: 'Error', message: expect.stringContaining('No file') });
    expect(on.gitlab.requests).toEqual([]);
  },
);

describe('a ref', () => {
  test.each([
    ['the commit of the run', () => on.mergeRequest.sha],
    ['its start', () => on.mergeRequest.sha.slice(0, 8).toUpperCase()],
    ['the target branch', () => 'main'],
    ['the merge base', () => on.mergeRequest.baseSha],
    ['its start', () => on.mergeRequest.baseSha.slice(0, 10)],
  ])('may be %s', async (_what, ref) => {
    for (const at of [on.mergeRequest.sha, on.mergeRequest.baseSha, 'main']) put('a', at, at);
    const expected = { [on.mergeRequest.baseSha.slice(0, 10)]: on.mergeRequest.baseSha, main: 'main' };
    const { text } = await readStream(await call('a', ref()));
    expect(text).toBe(expected[ref()] ?? (ref() === on.mergeRequest.baseSha ? ref() : on.mergeRequest.sha));
  });

  test('of the commit costs no further request', async () => {
    put('a', 'x');
    await readStream(await call('a'));
    expect(on.gitlab.requests).toHaveLength(1);
  });

  test.each(['secret-branch', 'feature-1', 'refs/heads/main', 'HEAD', 'main~1', 'a', 'f'.repeat(40)])(
    '%s is refused, with what is allowed, and no file is asked for',
    async (ref) => {
      put('a', 'secret', ref);
      expect(await call('a', ref)).toEqual({
        kind: 'Error',
        message: `Not allowed: ref ${ref}. This run reads project "group/app", iid 1, sha "${on.mergeRequest.sha}", target branch "main", merge base "${on.mergeRequest.baseSha}" only.`,
      });
      expect(on.gitlab.requests.some(({ path }) => path.includes('files'))).toBe(false);
    },
  );

  test('of another project is refused without asking GitLab', async () => {
    expect(await call('a', 'main', 'group/other')).toMatchObject({
      kind: 'Error',
      message: expect.stringMatching(/^Not allowed: project group\/other\./),
    });
    expect(on.gitlab.requests).toEqual([]);
  });

  test('may be any in a project that the workflow allows', async () => {
    await on.stop();
    on = await gitlabToolsOn({ allowedProjects: ['group/other'] });
    const other = on.state.project({ path: 'group/other' });
    const both = on.state.user({ username: 'both' });
    for (const project of [on.project, other]) on.state.member(project, both, 30);
    on.readAs(on.state.token({ user: both, scopes: ['read_api'] }));
    on.state.file(other, 'v1.2', 'a', 'theirs');
    expect((await readStream(await call('a', 'v1.2', 'Group/Other'))).text).toBe('theirs');
    expect(await call('a', 'v1.2')).toMatchObject({ message: expect.stringContaining('ref v1.2') });
  });
});

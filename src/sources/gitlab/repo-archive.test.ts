import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { gitlabToolsOn, readStream } from '../../../test/builders/gitlab-tools.ts';
import { type FakeObjectStorage, startObjectStorage } from '../../../test/fakes/gitlab/index.ts';

let on: Awaited<ReturnType<typeof gitlabToolsOn>>;
let storage: FakeObjectStorage;
beforeEach(async () => {
  on = await gitlabToolsOn();
  storage = await startObjectStorage();
  on.state.file(on.project, on.mergeRequest.sha, 'src/a.ts', 'export {};\n');
});
afterEach(async () => {
  expect(on.gitlab.violations).toEqual([]);
  expect(storage.violations).toEqual([]);
  await on.stop();
  await storage.stop();
});

const archive = (ref = on.mergeRequest.sha, project = 'group/app') =>
  on.call('gitlab_get_repo_archive', { project, ref });

describe('an archive', () => {
  test('is unpacked as the notes teach', async () => {
    const output = await archive();
    expect(output).toMatchObject({ suffix: '.tar.gz', binary: true });
    const folder = await mkdtemp(join(tmpdir(), 'archive-'));
    try {
      const file = join(folder, 'x.tar.gz');
      await writeFile(file, (await readStream(output)).bytes);
      await promisify(execFile)('tar', ['-xzf', file, '-C', folder, '--strip-components=1']);
      expect(await readFile(join(folder, 'src/a.ts'), 'utf8')).toBe('export {};\n');
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('that breaks off keeps what came and says what that is good for', async () => {
    const bytes = Buffer.alloc(300_000, 7);
    on.project.archive = function* () {
      yield bytes;
      throw new Error('the disk of GitLab is gone');
    };
    const read = await readStream(await archive());
    expect(read.bytes.equals(bytes)).toBe(true);
    expect(read.incomplete).toMatch(
      /^The archive broke off after 300000 bytes \(.*\); the rest is missing\. Unpacking it/,
    );
  });

  test.each(['feature-1', 'other', 'v1'])('of %s is refused, with what is allowed', async (ref) => {
    expect(await archive(ref)).toMatchObject({
      kind: 'Error',
      message: expect.stringMatching(
        /^Not allowed: ref .* target branch "main", merge base "[0-9a-f]{40}" only\.$/,
      ),
    });
    expect(on.gitlab.requests.some(({ path }) => path.includes('archive'))).toBe(false);
  });

  test('of another project is refused without asking GitLab', async () => {
    expect(await archive('main', 'group/other')).toMatchObject({ kind: 'Error' });
    expect(on.gitlab.requests).toEqual([]);
  });
});

describe('what GitLab keeps in object storage', () => {
  test('is fetched there without the token: an archive', async () => {
    on.project.objectStorage = storage.url;
    storage.objects.set(`archives/${on.mergeRequest.sha}.tar.gz`, Buffer.from('packed'));
    expect((await readStream(await archive())).text).toBe('packed');
  });

  test('is fetched there without the token: a job log', async () => {
    on.project.objectStorage = storage.url;
    const pipeline = on.state.pipeline(on.project, { user: on.users.ada, mergeRequest: on.mergeRequest });
    const job = on.state.job(pipeline, { name: 'unit' });
    storage.objects.set(`traces/${job.id}/job.log`, Buffer.from('\u001b[31mred\u001b[0m\n'));
    const output = await on.call('gitlab_get_job_log', { project: 'group/app', job_id: job.id });
    expect((await readStream(output)).text).toBe('red\n');
  });

  test.each([
    'http://169.254.169.254/latest',
    'http://[fd00:ec2::254]/latest',
    'ftp://127.0.0.1/x',
    'http://user:pass@127.0.0.1/x',
  ])('at %s is refused, and the message tells no signature', async (objectStorage) => {
    on.project.objectStorage = objectStorage;
    const output = await archive();
    expect(output).toMatchObject({
      kind: 'Error',
      message: expect.stringMatching(/refused|may not be reached/),
    });
    expect(JSON.stringify(output)).not.toContain('5'.repeat(64));
  });

  test('and is gone is an answer, not a run that ends', async () => {
    on.project.objectStorage = storage.url;
    expect(await archive()).toMatchObject({
      kind: 'Error',
      message: expect.stringContaining('answered 404'),
    });
  });
});

test('the stand-in packs what GitLab packs: one folder at the top', async () => {
  const { bytes } = await readStream(await archive());
  expect(gunzipSync(bytes).subarray(0, 100).toString()).toContain(
    `group-app-${on.mergeRequest.sha}/src/a.ts`,
  );
});

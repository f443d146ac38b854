import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { anEnvelope } from '../../test/builders/session.ts';
import { type LocalSandbox, startLocalSandbox } from '../../test/fakes/local-sandbox.ts';
import { createFolderStore } from '../store/folder.ts';
import type { ObjectStore } from '../store/port.ts';
import { archiveSandbox } from './archive.ts';
import { type EarlierSession, loadEarlierSession, restoreFiles } from './earlier-session.ts';
import { saveSession, sessionKey } from './session.ts';

const signal = new AbortController().signal;
let folder: string;
let store: ObjectStore;
let old: LocalSandbox;
let fresh: LocalSandbox;
let earlier: EarlierSession;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'earlier-'));
  store = createFolderStore(folder);
  [old, fresh] = await Promise.all([startLocalSandbox(), startLocalSandbox()]);
  await old.exec(
    'mkdir -p /tmp/data/_out && echo kept > /tmp/data/kept && echo log > /tmp/data/_out/job_012.log',
  );
  await saveSession(store, {
    envelope: anEnvelope(),
    transcript: '# T',
    archive: (to, key) => archiveSandbox(old, to, key),
  });
  const loaded = await loadEarlierSession(store, 's-1');
  if (loaded === undefined) throw new Error('it was saved just now');
  earlier = loaded;
});
afterEach(async () => {
  await Promise.all([old.cleanup(), fresh.cleanup()]);
  await rm(folder, { recursive: true });
});

const files = async () =>
  Buffer.from((await fresh.exec('cd /tmp/data && find . -type f')).stdout)
    .toString()
    .trim();

test('the files of the earlier sandbox are in the new one, and their numbers are not given out again', async () => {
  expect(await restoreFiles(store, earlier, fresh, signal)).toEqual({ problem: undefined, lastSpill: 12 });
  expect((await files()).split('\n').toSorted()).toEqual(['./_out/job_012.log', './kept']);
});

test('an archive of another save is left out, and that is said', async () => {
  await old.exec('echo newer > /tmp/data/kept');
  await archiveSandbox(old, store, sessionKey('s-1', 'sandbox'));
  const restored = await restoreFiles(store, earlier, fresh, signal);
  expect(restored).toEqual({ problem: expect.stringContaining('another save'), lastSpill: 0 });
  expect(await files()).toBe('');
});

test('an archive that is gone is said to be', async () => {
  await store.delete(sessionKey('s-1', 'sandbox'));
  expect((await restoreFiles(store, earlier, fresh, signal)).problem).toContain('gone');
});

test('a sandbox that goes away meanwhile does not end the conversation', async () => {
  fresh.lose();
  expect((await restoreFiles(store, earlier, fresh, signal)).problem).toMatch(/could not be restored: .+/);
});

test('a session without files has nothing to say of them', async () => {
  expect(await restoreFiles(store, { ...earlier, envelope: anEnvelope() }, fresh, signal)).toEqual({
    problem: undefined,
    lastSpill: 0,
  });
});

test('a session that is not there is undefined', async () => {
  expect(await loadEarlierSession(store, 'nope')).toBeUndefined();
});

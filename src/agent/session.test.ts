import { createHash } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type LocalSandbox, startLocalSandbox } from '../../test/fakes/local-sandbox.ts';
import { createFolderStore } from '../store/folder.ts';
import type { ObjectStore } from '../store/port.ts';
import { archiveSandbox, restoreSandbox } from './archive.ts';
import {
  envelopeUsage,
  loadSession,
  parseEnvelope,
  type SessionToSave,
  saveSession,
  sessionKey,
} from './session.ts';
import { NO_USAGE } from './usage.ts';

let folder: string;
let store: ObjectStore;
let sandbox: LocalSandbox;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'session-'));
  store = createFolderStore(folder);
  sandbox = await startLocalSandbox();
});
afterEach(async () => {
  await sandbox.cleanup();
  await rm(folder, { recursive: true });
});

const envelope: SessionToSave['envelope'] = {
  format_version: 1,
  session_id: 's-1',
  workflow: 'analyze-failures',
  project: 'group/app',
  iid: 7,
  sha: 'abc',
  model: 'demo',
  provider: 'openai',
  updated_at: '2026-11-30T00:00:00.000Z',
  usage: envelopeUsage({ ...NO_USAGE, inputTokens: 5 }),
  contents: [
    { role: 'user', content: 'hi' },
    {
      role: 'assistant',
      content: '',
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'a', arguments: '{}' } }],
      extra: { gemini: { signature: 'c2lnLTE=' } },
    },
    { role: 'tool', tool_call_id: 'c', name: 'a', content: '{}' },
  ],
};

async function textOf(key: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  const object = await store.get(key);
  for await (const chunk of object?.body ?? []) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

async function bytesOf(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts);
}

async function* bytesOnce(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

test('a session is saved under its three keys and read back as it was', async () => {
  await sandbox.exec('mkdir -p /tmp/data/_out && echo log > /tmp/data/_out/1.txt');
  const archive = (to: ObjectStore, key: string) => archiveSandbox(sandbox, to, key);
  const saved = await saveSession(store, { envelope, transcript: '# T', archive });
  expect(saved).toMatchObject({ context: { kind: 'Stored' }, missing: [] });
  expect(await textOf('sessions/s-1/transcript.md')).toBe('# T');
  const loaded = await loadSession(store, 's-1');
  expect(loaded?.read).toMatchObject({ kind: 'Canonical', envelope });
  const files = loaded?.read.kind === 'Canonical' ? loaded.read.envelope.files : undefined;
  expect(files?.transcript?.sha256).toBe(createHash('sha256').update('# T').digest('hex'));
  expect(files?.sandbox?.bytes).toBeGreaterThan(0);
});

test('the archive carries files from one sandbox to another, and leaves nothing in the first', async () => {
  await sandbox.exec(
    'mkdir -p /tmp/data/_out && echo log > /tmp/data/_out/1.txt && head -c 3000000 /dev/urandom > /tmp/data/bin',
  );
  const sum = (where: LocalSandbox) => where.exec('cd /tmp/data && cat _out/1.txt bin | sha256sum; ls -A');
  const before = Buffer.from((await sum(sandbox)).stdout).toString();
  await archiveSandbox(sandbox, store, sessionKey('s-1', 'sandbox'));
  expect(Buffer.from((await sum(sandbox)).stdout).toString()).toBe(before);
  const other = await startLocalSandbox();
  const object = await store.get(sessionKey('s-1', 'sandbox'));
  await restoreSandbox(other, object!.body);
  expect(Buffer.from((await sum(other)).stdout).toString()).toBe(before);
  await other.cleanup();
});

test('invariant 5: an archive is handed from sandbox to store to sandbox byte for byte, whatever it holds', async () => {
  // Names that climb, links to the outside, and what is no archive at all: nobody here looks into any of them.
  const hostile = await startLocalSandbox();
  await hostile.exec(
    'mkdir -p /tmp/data && cd /tmp/data && ln -s /etc out && echo x > a && tar -P -czf evil.tar.gz --transform "s,^,../../../," a out && mv evil.tar.gz .session.tar.gz',
  );
  const evil = await bytesOf(hostile.readFile('/tmp/data/.session.tar.gz'));
  await hostile.cleanup();
  for (const bytes of [evil, Buffer.from('no archive'), Buffer.alloc(70_000, 0x1f)]) {
    const asked: string[] = [];
    let arrived: Uint8Array = Buffer.alloc(0);
    const done = { kind: 'Exited', exitCode: 0, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) } as const;
    const counts = { stdoutBytes: 0, stderrBytes: 0 };
    const watched: LocalSandbox = {
      ...sandbox,
      exec: async (command) => {
        asked.push(command);
        return { ...done, ...counts };
      },
      async *readFile() {
        yield bytes;
      },
      streamExec: async (command, input) => {
        asked.push(command);
        arrived = await bytesOf(input);
        return { ...done, ...counts };
      },
    };
    await archiveSandbox(watched, store, 'k');
    const object = await store.get('k');
    await restoreSandbox(watched, object?.body ?? bytesOnce(Buffer.alloc(0)));
    expect(Buffer.compare(arrived, bytes)).toBe(0);
    expect(asked.at(-1)).toMatch(/tar xzf -$/);
    // The store's folder holds the one object and nothing beside it.
    expect((await readdir(folder)).filter((name) => name !== '.store')).toEqual(['k']);
  }
});

test('an archive that cannot be unpacked is an error that says why', async () => {
  async function* rubbish(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('no archive');
  }
  await expect(restoreSandbox(sandbox, rubbish())).rejects.toThrow(/could not be unpacked: status \d+: .+/);
});

test('a lost sandbox does not keep the conversation from being saved', async () => {
  sandbox.lose();
  const archive = (to: ObjectStore, key: string) => archiveSandbox(sandbox, to, key);
  const saved = await saveSession(store, { envelope, transcript: '# T', archive });
  expect(saved.context.kind).toBe('Stored');
  expect(saved.missing).toEqual([{ file: 'sandbox.tar.gz', message: expect.stringMatching(/deleted/) }]);
});

test('a save that continues an older state than the stored one is a conflict', async () => {
  await saveSession(store, { envelope, transcript: 'one' });
  const loaded = await loadSession(store, 's-1');
  const ifMatch = loaded?.etag ?? '';
  expect(
    await saveSession(store, { envelope: { ...envelope, iid: 8 }, transcript: 'two', ifMatch }),
  ).toMatchObject({
    context: { kind: 'Stored' },
  });
  const late = await saveSession(store, { envelope, transcript: 'three', ifMatch });
  expect(late.context).toEqual({ kind: 'Conflict' });
});

test('a session that is not there is undefined', async () => {
  expect(await loadSession(store, 'nope')).toBeUndefined();
});

describe('an envelope', () => {
  test('without a version is read as a conversation in the Gemini form', () => {
    const contents = [{ role: 'user', parts: [{ text: 'hi' }] }];
    expect(parseEnvelope(JSON.stringify({ contents }))).toEqual({ kind: 'LegacyGemini', contents });
    expect(parseEnvelope(JSON.stringify(contents))).toEqual({ kind: 'LegacyGemini', contents });
  });

  test.each([
    ['that is no JSON', '{', /not JSON/],
    ['of a later version', '{"format_version":2}', /format 2/],
    ['with a damaged message', JSON.stringify({ ...envelope, contents: [{ role: 'tool' }] }), /contents\.0/],
    ['that is something else', '{"a":1}', /cannot be read/],
  ])('%s is refused', (_name, text, message) => {
    expect(() => parseEnvelope(text)).toThrow(message);
  });
});

import { createHash } from 'node:crypto';
import { mkdtemp, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startFauxqs } from 'fauxqs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type S3Server, startS3 } from '../../test/fakes/s3/server.ts';
import { createFolderStore } from './folder.ts';
import type { ObjectStore } from './port.ts';
import { StoreError } from './port.ts';
import { createS3Store, type S3Options } from './s3.ts';

const PART = 5 * 1024 * 1024;
const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
const s3Options = (endpoint: string): S3Options => ({
  bucket: 'sessions',
  region: 'us-east-1',
  endpoint,
  pathStyle: true,
  credentials,
  partBytes: PART,
});

interface Place {
  readonly store: ObjectStore;
  close(): Promise<unknown>;
}

const places: { name: string; conditional: boolean; open: () => Promise<Place> }[] = [
  {
    name: 'a folder',
    conditional: true,
    open: async () => {
      const folder = await mkdtemp(join(tmpdir(), 'store-'));
      return { store: createFolderStore(folder), close: () => rm(folder, { recursive: true }) };
    },
  },
  {
    name: 'the strict S3 stand-in',
    conditional: true,
    open: async () => {
      const server = await startS3('sessions');
      const store = createS3Store(s3Options(server.endpoint));
      return { store, close: () => closeBoth(store, server) };
    },
  },
  {
    // It takes If-None-Match and If-Match of a write without looking at them, so those are not tried on it.
    name: 'fauxqs',
    conditional: false,
    open: async () => {
      const server = await startFauxqs({ port: 0, logger: false });
      server.createBucket('sessions');
      const store = createS3Store(s3Options(`http://127.0.0.1:${server.port}`));
      return { store, close: () => closeBoth(store, server) };
    },
  },
];

async function closeBoth(store: { close(): void }, server: { stop(): Promise<void> }): Promise<void> {
  store.close();
  await server.stop();
}

async function* chunks(...parts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield Buffer.from(part);
}

async function read(store: ObjectStore, key: string): Promise<Buffer | undefined> {
  const object = await store.get(key);
  return object && Buffer.concat(await collect(object.body));
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const sha256 = (bytes: string | Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

describe.each(places)('an object store in $name', ({ conditional, open }) => {
  let place: Place;
  let store: ObjectStore;
  beforeEach(async () => {
    place = await open();
    store = place.store;
  });
  afterEach(() => place.close());

  test('gives back what was put, with its size and etag', async () => {
    const put = await store.put('a/b.json', Buffer.from('{"é":1}'), { contentType: 'application/json' });
    expect(put).toMatchObject({ kind: 'Stored', bytes: 8, sha256: sha256('{"é":1}') });
    const object = await store.get('a/b.json');
    expect(object).toMatchObject({ bytes: 8, etag: put.kind === 'Stored' ? put.etag : '' });
    expect(Buffer.concat(await collect(object!.body)).toString()).toBe('{"é":1}');
  });

  test('keeps empty objects', async () => {
    expect(await store.put('empty', new Uint8Array())).toMatchObject({ kind: 'Stored', bytes: 0 });
    expect(await store.put('none', chunks())).toMatchObject({ kind: 'Stored', bytes: 0 });
    expect(await read(store, 'none')).toHaveLength(0);
  });

  test.each([PART - 1, PART, PART + 1, 2 * PART])(
    'takes a stream of %i bytes whatever its chunks',
    async (size) => {
      const bytes = Buffer.alloc(size, 'abcdefg');
      const parts = [bytes.subarray(0, 1), bytes.subarray(1, 70_000), bytes.subarray(70_000)];
      expect(await store.put('big', chunks(...parts))).toMatchObject({
        kind: 'Stored',
        bytes: size,
        sha256: sha256(bytes),
      });
      expect(sha256((await read(store, 'big')) ?? '')).toBe(sha256(bytes));
    },
  );

  test('has nothing under an unknown key, and says so when deleting', async () => {
    expect(await store.get('nothing/here')).toBeUndefined();
    expect(await store.delete('nothing/here')).toBe(false);
    await store.put('a/b/c', Buffer.from('x'));
    expect(await store.get('a/b')).toBeUndefined();
    expect(await store.delete('a/b')).toBe(false);
    expect(await store.delete('a/b/c')).toBe(true);
    expect(await store.get('a/b/c')).toBeUndefined();
  });

  test('lists keys below a prefix in the order of their bytes', async () => {
    for (const key of ['s/b', 's/a/z', 's/a-b', 's/a.b', 's/é', 's/a/1', 't/x', 's-1'])
      await store.put(key, Buffer.from('x'));
    expect(await collect(store.list('s/'))).toEqual(['s/a-b', 's/a.b', 's/a/1', 's/a/z', 's/b', 's/é']);
    expect(await collect(store.list('s/a'))).toEqual(['s/a-b', 's/a.b', 's/a/1', 's/a/z']);
    expect(await collect(store.list('u'))).toEqual([]);
  });

  test.each(['', '/a', 'a/', 'a//b', '../a', 'a/../../b', '.store/x', 'a\\b', 'a\nb', 'x'.repeat(1025)])(
    'refuses the key %j',
    async (key) => {
      await expect(store.put(key, Buffer.from('x'))).rejects.toBeInstanceOf(StoreError);
      await expect(store.get(key)).rejects.toBeInstanceOf(StoreError);
      await expect(store.delete(key)).rejects.toBeInstanceOf(StoreError);
    },
  );

  test('a source that fails leaves the object as it was', async () => {
    await store.put('a', Buffer.from('old'));
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(PART + 10);
      throw new Error('sandbox lost');
    }
    await expect(store.put('a', broken())).rejects.toThrow(/sandbox lost/);
    expect((await read(store, 'a'))?.toString()).toBe('old');
  });

  test('an aborted put rejects with the reason and stores nothing', async () => {
    const signal = AbortSignal.abort(new Error('cancelled'));
    await expect(store.put('a', chunks('x'), { signal })).rejects.toThrow('cancelled');
    expect(await store.get('a')).toBeUndefined();
  });

  // An emulator that lets every write through has nothing to be tested for.
  if (!conditional) return;

  test('with ifNoneMatch keeps the first of many writers', async () => {
    const puts = Array.from({ length: 8 }, (_, n) =>
      store.put('seq/1', chunks(`${n}`), { ifNoneMatch: true }),
    );
    const results = await Promise.all(puts);
    const winners = results.flatMap(({ kind }, n) => (kind === 'Stored' ? [n] : []));
    expect(winners).toHaveLength(1);
    expect(results.filter(({ kind }) => kind === 'AlreadyExists')).toHaveLength(7);
    expect((await read(store, 'seq/1'))?.toString()).toBe(`${winners[0]}`);
  });

  test('with ifNoneMatch keeps the object against a large stream too', async () => {
    await store.put('a', Buffer.from('old'));
    const large = chunks(Buffer.alloc(PART), 'more');
    expect(await store.put('a', large, { ifNoneMatch: true })).toEqual({ kind: 'AlreadyExists' });
    expect((await read(store, 'a'))?.toString()).toBe('old');
  });

  test('with ifMatch replaces only the object that was read', async () => {
    const first = await store.put('a', Buffer.from('1'));
    const ifMatch = first.kind === 'Stored' ? first.etag : '';
    expect(await store.put('a', Buffer.from('2'), { ifMatch })).toMatchObject({ kind: 'Stored' });
    expect(await store.put('a', Buffer.from('3'), { ifMatch })).toEqual({ kind: 'Conflict' });
    expect(await store.put('missing', Buffer.from('3'), { ifMatch })).toEqual({ kind: 'Conflict' });
    expect((await read(store, 'a'))?.toString()).toBe('2');
  });

  test('with ifMatch lets one of many writers through', async () => {
    const first = await store.put('a', Buffer.from('0'));
    const ifMatch = first.kind === 'Stored' ? first.etag : '';
    const puts = Array.from({ length: 6 }, (_, n) => store.put('a', Buffer.from(`w${n}`), { ifMatch }));
    const kinds = (await Promise.all(puts)).map(({ kind }) => kind).toSorted();
    expect(kinds).toEqual(['Conflict', 'Conflict', 'Conflict', 'Conflict', 'Conflict', 'Stored']);
  });
});

describe('a store in S3', () => {
  let server: S3Server;
  let store: ReturnType<typeof createS3Store>;
  beforeEach(async () => {
    server = await startS3('sessions');
    store = createS3Store(s3Options(server.endpoint));
  });
  afterEach(async () => {
    store.close();
    await server.stop();
  });

  test('knows its own object again when the answer to a conditional write was lost', async () => {
    server.faults.push({ on: /^PUT a/, fault: { kind: 'DropAfter' } });
    expect(await store.put('a', Buffer.from('mine'), { ifNoneMatch: true })).toMatchObject({
      kind: 'Stored',
    });
    expect(server.log.filter((line) => line.startsWith('PUT a'))).toHaveLength(2);
  });

  test('tells its own object from an equal one of another writer', async () => {
    await store.put('a', Buffer.from('same'));
    expect(await store.put('a', Buffer.from('same'), { ifNoneMatch: true })).toEqual({
      kind: 'AlreadyExists',
    });
  });

  test('repeats a write that met another and a server that is busy', async () => {
    server.faults.push({
      on: /^PUT a/,
      fault: { kind: 'Status', status: 409, code: 'ConditionalRequestConflict' },
    });
    server.faults.push({ on: /^PUT a/, fault: { kind: 'Status', status: 503, code: 'SlowDown' } });
    expect(await store.put('a', Buffer.from('x'), { ifNoneMatch: true })).toMatchObject({ kind: 'Stored' });
  });

  test('leaves no parts behind when an upload fails', async () => {
    server.faults.push({ on: /partNumber=2/, fault: { kind: 'Status', status: 403, code: 'AccessDenied' } });
    await expect(store.put('a', chunks(Buffer.alloc(PART), 'end'))).rejects.toThrow(
      'Cannot write a in s3://sessions/: 403 AccessDenied. Check the credentials and the bucket policy.',
    );
    expect(server.openUploads.size).toBe(0);
    expect(server.objects.size).toBe(0);
  });

  test('does not pass off a cut body as the object', async () => {
    await store.put('a', Buffer.alloc(100_000, 'x'));
    server.faults.push({ on: /^GET a/, fault: { kind: 'CutBody' } });
    await expect(read(store, 'a')).rejects.toMatchObject({ name: 'StoreError', retryable: true });
  });

  test('names a bucket that does not exist', async () => {
    const other = createS3Store({ ...s3Options(server.endpoint), bucket: 'nope' });
    await expect(other.put('a', Buffer.from('x'))).rejects.toThrow(/NoSuchBucket\. Create the bucket/);
    await expect(other.get('a')).rejects.toMatchObject({ retryable: false });
    other.close();
  });
});

describe('a store in a folder', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'store-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  test('leaves no temporary files and no locks', async () => {
    const store = createFolderStore(folder);
    await store.put('a/b', Buffer.from('x'));
    await store.put('a/b', Buffer.from('y'), { ifNoneMatch: true });
    await store.delete('a/b');
    expect(await readdir(folder)).toEqual(['.store']);
    expect(await readdir(join(folder, '.store/tmp'))).toEqual([]);
    expect(await readdir(join(folder, '.store/locks'))).toEqual([]);
  });

  test('a reader keeps the object that it opened while another is put in its place', async () => {
    const store = createFolderStore(folder);
    await store.put('a', Buffer.from('old'));
    const object = await store.get('a');
    await store.put('a', Buffer.from('new'));
    expect(Buffer.concat(await collect(object!.body)).toString()).toBe('old');
  });

  test('takes over the lock of a process that died', async () => {
    const store = createFolderStore(folder);
    await store.put('a', Buffer.from('x'));
    const lock = join(folder, '.store/locks', sha256('a'));
    await writeFile(lock, '');
    const longAgo = new Date(Date.now() - 120_000);
    await utimes(lock, longAgo, longAgo);
    expect(await store.put('a', Buffer.from('y'))).toMatchObject({ kind: 'Stored' });
  });

  test('two stores on one folder exclude each other', async () => {
    const [one, two] = [createFolderStore(folder), createFolderStore(folder)];
    const first = await one.put('a', Buffer.from('0'));
    const ifMatch = first.kind === 'Stored' ? first.etag : '';
    const puts = [one, two, one, two].map((store, n) => store.put('a', Buffer.from(`w${n}`), { ifMatch }));
    expect((await Promise.all(puts)).filter(({ kind }) => kind === 'Stored')).toHaveLength(1);
  });

  test('does not list what is no file of its own', async () => {
    const store = createFolderStore(folder);
    await symlink('/etc/passwd', join(folder, 'link'));
    await store.put('a', Buffer.from('x'));
    expect(await collect(store.list(''))).toEqual(['a']);
  });

  test('is a file URL', () => {
    expect(createFolderStore('/var/lib/sessions').location).toBe('file:///var/lib/sessions/');
  });
});

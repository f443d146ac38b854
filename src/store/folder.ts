import { createHash, randomUUID } from 'node:crypto';
import { type FileHandle, link, mkdir, open, readdir, rename, rmdir, unlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { asChunks, createMeter } from './bytes.ts';
import { keyLocks } from './folder-locks.ts';
import { checkKey } from './keys.ts';
import { type ObjectStore, type PutOptions, type PutResult, type StoredObject, StoreError } from './port.ts';

/** Holds temporary files and locks; no key can name it, since segments never begin with a dot. */
const OWN_FOLDER = '.store';

/**
 * Objects as files below a folder, for one machine. A reader sees an object whole or not at all: it is written
 * beside and put in place by rename(2), or by link(2) when it must not replace another. Etags are sha256 sums.
 */
export function createFolderStore(folder: string): ObjectStore {
  const root = resolve(folder);
  const own = join(root, OWN_FOLDER);
  const locks = keyLocks(join(own, 'locks'));
  const pathOf = (key: string): string => {
    checkKey(key);
    return join(root, key);
  };

  async function put(
    key: string,
    body: Uint8Array | AsyncIterable<Uint8Array>,
    options: PutOptions = {},
  ): Promise<PutResult> {
    const path = pathOf(key);
    const temporary = join(own, 'tmp', randomUUID());
    try {
      const { sha256, bytes } = await writeTemporary(temporary, body, options.signal);
      return await locks.hold(key, async () => {
        const refusal = await place(temporary, path, options);
        return refusal ?? { kind: 'Stored', etag: sha256, sha256, bytes };
      });
    } catch (error) {
      options.signal?.throwIfAborted();
      throw storeError(`write ${key}`, root, error);
    } finally {
      await unlink(temporary).catch(() => undefined);
    }
  }

  async function get(key: string, signal?: AbortSignal): Promise<StoredObject | undefined> {
    const path = pathOf(key);
    let file: FileHandle | undefined;
    try {
      file = await open(path, 'r');
      const stat = await file.stat();
      if (!stat.isFile()) {
        await file.close();
        return undefined;
      }
      // One open file for sum and content: a writer that replaces the object meanwhile replaces the name only.
      const etag = await sumOf(file);
      return { body: contentOf(file, signal), etag, bytes: stat.size };
    } catch (error) {
      await file?.close();
      if (isMissing(error)) return undefined;
      throw storeError(`read ${key}`, root, error);
    }
  }

  async function remove(key: string): Promise<boolean> {
    const path = pathOf(key);
    return locks.hold(key, async () => {
      try {
        await unlink(path);
      } catch (error) {
        if (isMissing(error) || codeOf(error) === 'EISDIR' || codeOf(error) === 'EPERM') return false;
        throw storeError(`delete ${key}`, root, error);
      }
      await removeEmptyFolders(dirname(path), root);
      return true;
    });
  }

  return {
    location: pathToFileURL(`${root}/`).href,
    put,
    get,
    delete: remove,
    list: (prefix) => listBelow(root, '', prefix),
  };
}

async function writeTemporary(
  path: string,
  body: Uint8Array | AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<{ sha256: string; bytes: number }> {
  await mkdir(dirname(path), { recursive: true });
  const meter = createMeter();
  const file = await open(path, 'wx');
  try {
    for await (const chunk of meter.pass(asChunks(body))) {
      signal?.throwIfAborted();
      await file.writeFile(chunk);
    }
    // The name must not be on disk before the content is.
    await file.sync();
  } finally {
    await file.close();
  }
  return { sha256: meter.sha256(), bytes: meter.bytes };
}

/** Undefined when the file is in its place. The key's lock is held. */
async function place(
  temporary: string,
  path: string,
  { ifNoneMatch, ifMatch }: PutOptions,
): Promise<PutResult | undefined> {
  if (ifMatch !== undefined && (await currentEtag(path)) !== ifMatch) return { kind: 'Conflict' };
  for (let attempt = 0; ; attempt++) {
    await mkdir(dirname(path), { recursive: true });
    try {
      await (ifNoneMatch ? link(temporary, path) : rename(temporary, path));
      return undefined;
    } catch (error) {
      if (ifNoneMatch && codeOf(error) === 'EEXIST') return { kind: 'AlreadyExists' };
      // A delete beside us removed the folder as empty.
      if (codeOf(error) !== 'ENOENT' || attempt >= 5) throw error;
    }
  }
}

async function currentEtag(path: string): Promise<string | undefined> {
  try {
    const file = await open(path, 'r');
    try {
      return await sumOf(file);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

async function sumOf(file: FileHandle): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of file.createReadStream({ start: 0, autoClose: false })) hash.update(chunk);
  return hash.digest('hex');
}

async function* contentOf(file: FileHandle, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of file.createReadStream({ start: 0, autoClose: false })) {
      signal?.throwIfAborted();
      yield chunk;
    }
  } finally {
    await file.close();
  }
}

/** In the order of whole keys, as a bucket has it: a folder sorts as its name with a slash. */
async function* listBelow(root: string, below: string, prefix: string): AsyncGenerator<string> {
  const entries = await readdir(join(root, below), { withFileTypes: true }).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw storeError(`list ${prefix}`, root, error);
  });
  const names = entries
    .filter((entry) => !entry.name.startsWith('.') && (entry.isFile() || entry.isDirectory()))
    .map((entry) => `${below}${entry.name}${entry.isDirectory() ? '/' : ''}`)
    .toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  for (const name of names) {
    if (!name.startsWith(prefix) && !(name.endsWith('/') && prefix.startsWith(name))) continue;
    if (name.endsWith('/')) yield* listBelow(root, name, prefix);
    else yield name;
  }
}

async function removeEmptyFolders(folder: string, root: string): Promise<void> {
  for (let current = folder; current !== root; current = dirname(current)) {
    try {
      await rmdir(current);
    } catch {
      return;
    }
  }
}

function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR';
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

function storeError(what: string, root: string, error: unknown): Error {
  if (error instanceof StoreError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const advice = codeOf(error) === 'ENOSPC' ? ' Free some space.' : '';
  return new StoreError(`Cannot ${what} in ${root}: ${message}.${advice}`, {
    retryable: false,
    cause: error,
  });
}

import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { type RepositoryTree, type TreeEntry, TreeUnavailableError } from '../../delivery/port.ts';
import { HttpError } from '../../http/client.ts';
import { ArchiveError, tarEntries } from './tar-entries.ts';

const MiB = 1024 * 1024;

/** A repository of deployments is far below all of these; two of them are in memory at a time. */
export interface TreeBounds {
  readonly files: number;
  /** Of all files that are held. */
  readonly heldBytes: number;
  /** A larger file is named and not held. */
  readonly fileBytes: number;
  /** Of the unpacked stream, with what is passed over: an end for archives that unpack to anything. */
  readonly unpackedBytes: number;
}

export const TREE_BOUNDS: TreeBounds = {
  files: 20_000,
  heldBytes: 64 * MiB,
  fileBytes: 6 * MiB,
  unpackedBytes: 1024 * MiB,
};

/**
 * The tree in a `.tar.gz` as GitLab makes it, whose entries all stand in one folder. Files that `like` has with the
 * same bytes are held once for both. Throws `TreeUnavailableError`; passes on what the stream throws.
 */
export async function archiveTree(
  packed: AsyncIterable<Uint8Array>,
  sha: string,
  options: { readonly bounds?: TreeBounds; readonly like?: RepositoryTree | undefined } = {},
): Promise<RepositoryTree> {
  const { bounds = TREE_BOUNDS, like } = options;
  const entries = new Map<string, TreeEntry>();
  let held = 0;
  try {
    for await (const entry of tarEntries(unpacked(packed, bounds.unpackedBytes), bounds.fileBytes)) {
      if (entry.kind === 'Commit') {
        if (entry.sha !== sha) throw new ArchiveError(`shows the commit ${entry.sha.slice(0, 40)}`);
        continue;
      }
      const path = belowTop(entry.path);
      if (entry.kind === 'Folder' || path === undefined) continue;
      if (entries.has(path)) throw new ArchiveError(`has ${JSON.stringify(path)} twice`);
      if (entries.size >= bounds.files) throw new ArchiveError(`has more than ${bounds.files} files`);
      const kept = withoutPath(entry, like?.entry(path));
      if (kept.kind === 'File') held += kept.bytes.length;
      if (held > bounds.heldBytes)
        throw new ArchiveError(`has more than ${bounds.heldBytes / MiB} MiB of files`);
      entries.set(path, kept);
    }
  } catch (error) {
    if (error instanceof ArchiveError)
      throw new TreeUnavailableError(`The archive of ${sha.slice(0, 12)} ${error.message}.`);
    throw error;
  }
  rewritten(entries, sha);
  const paths = [...entries.keys()].sort();
  return { sha, paths, entry: (path) => entries.get(path) };
}

function withoutPath(
  entry: Exclude<Entry, { kind: 'Commit' | 'Folder' }>,
  like: TreeEntry | undefined,
): TreeEntry {
  if (entry.kind === 'Symlink') return { kind: 'Symlink', target: entry.target };
  if (entry.kind === 'TooLarge') return { kind: 'TooLarge', size: entry.size };
  const { bytes, executable } = entry;
  const same = like?.kind === 'File' && Buffer.compare(like.bytes, bytes) === 0;
  return { kind: 'File', bytes: same ? like.bytes : bytes, executable };
}

type Entry = ReturnType<typeof tarEntries> extends AsyncGenerator<infer T> ? T : never;

/** Without the folder that stands around everything; undefined: that folder itself. Throws `ArchiveError`. */
function belowTop(path: string): string | undefined {
  const segments = path.replace(/\/$/, '').split('/');
  // Git itself keeps no such names; whoever made this archive means somewhere else.
  const odd = segments.find((name) => name === '' || name === '.' || name === '..' || /^\.git$/i.test(name));
  if (odd !== undefined || path.includes('\0'))
    throw new ArchiveError(
      `has the path ${JSON.stringify(path.slice(0, 200))}, which is none of a repository`,
    );
  const below = segments.slice(1).join('/');
  return below === '' ? undefined : below;
}

/** Archives leave out or change files that `.gitattributes` marks, and what is not seen cannot be compared. */
function rewritten(entries: ReadonlyMap<string, TreeEntry>, sha: string): void {
  for (const [path, entry] of entries) {
    if (entry.kind !== 'File' || !/(^|\/)\.gitattributes$/.test(path)) continue;
    const found = /^(?!\s*#).*[ \t](export-(?:ignore|subst))\b/m.exec(Buffer.from(entry.bytes).toString());
    if (found !== null)
      throw new TreeUnavailableError(
        `The archive of ${sha.slice(0, 12)} is not all of the repository, since ${path} says ${found[1]}.`,
      );
  }
}

async function* unpacked(packed: AsyncIterable<Uint8Array>, limit: number): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip();
  let broken: unknown;
  // The reader sees what breaks on the gunzip, and what the stream threw here.
  pipeline(Readable.from(packed), gunzip, (error) => {
    broken = error;
  });
  let size = 0;
  try {
    for await (const chunk of gunzip) {
      const bytes: Uint8Array = chunk;
      size += bytes.length;
      if (size > limit) throw new ArchiveError(`unpacks to more than ${limit / MiB} MiB`);
      yield bytes;
    }
  } catch (error) {
    const cause = broken ?? error;
    if (cause instanceof HttpError || cause instanceof ArchiveError || !zlibFailed(cause)) throw cause;
    throw new ArchiveError('is damaged: it does not unpack');
  } finally {
    gunzip.destroy();
  }
}

const zlibFailed = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && /^Z_/.test(String(error.code));

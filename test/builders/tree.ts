import type { RepositoryTree, TreeEntry } from '../../src/delivery/port.ts';

/** A repository in one line: texts are files, anything else is the entry itself. */
export function aTree(
  files: Readonly<Record<string, string | Uint8Array | TreeEntry>>,
  sha = 'a'.repeat(40),
): RepositoryTree {
  const entries = new Map(Object.entries(files).map(([path, file]) => [path, entryOf(file)]));
  return { sha, paths: [...entries.keys()].sort(), entry: (path) => entries.get(path) };
}

function entryOf(file: string | Uint8Array | TreeEntry): TreeEntry {
  if (typeof file === 'string')
    return { kind: 'File', bytes: new TextEncoder().encode(file), executable: false };
  return file instanceof Uint8Array ? { kind: 'File', bytes: file, executable: false } : file;
}

import type { FileChange, RepositoryTree, TreeEntry } from './port.ts';

/** The tree as it would be with these files in it; `sha` is still that of the commit below. */
export function withChanges(tree: RepositoryTree, files: readonly FileChange[]): RepositoryTree {
  const changed = new Map<string, TreeEntry>(
    files.map(({ path, bytes }) => [path, { kind: 'File', bytes, executable: false }]),
  );
  return {
    sha: tree.sha,
    paths: [...new Set([...tree.paths, ...changed.keys()])].sort(),
    entry: (path) => changed.get(path) ?? tree.entry(path),
  };
}

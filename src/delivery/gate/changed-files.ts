import type { RepositoryTree, TreeEntry } from '../port.ts';

/** Paths that are there on one side only or are not the same on both, sorted. */
export function changedFiles(base: RepositoryTree, head: RepositoryTree): readonly string[] {
  return [...new Set([...base.paths, ...head.paths])]
    .filter((path) => !same(base.entry(path), head.entry(path)))
    .sort();
}

function same(one: TreeEntry | undefined, other: TreeEntry | undefined): boolean {
  if (one?.kind === 'File' && other?.kind === 'File')
    return one.executable === other.executable && Buffer.compare(one.bytes, other.bytes) === 0;
  if (one?.kind === 'Symlink' && other?.kind === 'Symlink') return one.target === other.target;
  // Nothing is known of what is in them; neither is ever edited.
  if (one?.kind === 'TooLarge' && other?.kind === 'TooLarge') return one.size === other.size;
  return one?.kind === other?.kind;
}

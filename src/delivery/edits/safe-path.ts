import type { RepositoryTree } from '../port.ts';
import { foldedPath } from './reach/out-of-reach.ts';
import type { Refusal } from './refusal.ts';

export type ResolvedFile =
  | { readonly kind: 'File'; readonly bytes: Uint8Array }
  | ({ readonly kind: 'Refused' } & Refusal);

/** The file at a path of the tree, when the path is spelled plainly and crosses nothing but folders. */
export function resolveFile(tree: RepositoryTree, path: string): ResolvedFile {
  const fault = spellingFault(path) ?? crossing(tree, path);
  if (fault !== undefined) return refused('UnsafePath', fault);
  const entry = tree.entry(path);
  switch (entry?.kind) {
    case 'File':
      return { kind: 'File', bytes: entry.bytes };
    case 'TooLarge':
      return refused('Unreadable', `has ${entry.size} bytes, more than is read`);
    case 'Symlink':
      return refused('UnsafePath', 'is a symbolic link');
    case 'Submodule':
      return refused('UnsafePath', 'is a submodule');
    case undefined:
      return refused('Unreadable', 'is not in the repository');
  }
}

function spellingFault(path: string): string | undefined {
  if (path === '') return 'is empty';
  if (path.startsWith('/') || /^[A-Za-z]:/.test(path)) return 'is absolute';
  if (path.includes('\\')) return 'has a backslash';
  // Controls, formats (direction, width) and halves of characters have no business in a path that people review.
  if (/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|\p{Default_Ignorable_Code_Point}/u.test(path))
    return 'has a character that is not seen';
  if (path !== path.normalize('NFC')) return 'is not in Unicode normal form C';
  for (const segment of path.split('/')) {
    if (segment === '') return 'has an empty segment';
    if (segment === '.' || segment === '..') return `has the segment ${segment}`;
    if (isGitFolder(segment)) return 'leads into .git';
  }
  return undefined;
}

/** Also as file systems spell it that shorten names (`GIT~1`) or have streams (`.git::$INDEX_ALLOCATION`). */
const isGitFolder = (segment: string): boolean => /^(\.git|git~\d+)(:.*)?$/.test(foldedPath(segment));

function crossing(tree: RepositoryTree, path: string): string | undefined {
  for (let slash = path.indexOf('/'); slash >= 0; slash = path.indexOf('/', slash + 1)) {
    const folder = path.slice(0, slash);
    const kind = tree.entry(folder)?.kind;
    if (kind === 'Symlink') return `crosses the symbolic link ${folder}`;
    if (kind === 'Submodule') return `crosses the submodule ${folder}`;
    if (kind !== undefined) return `goes below the file ${folder}`;
  }
  return undefined;
}

const refused = (reason: Refusal['reason'], message: string): ResolvedFile => ({
  kind: 'Refused',
  reason,
  message,
});

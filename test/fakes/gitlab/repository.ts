import { createHash } from 'node:crypto';

export type FakeEntry =
  | { readonly bytes: Uint8Array; readonly executable?: boolean }
  | { readonly symlink: string }
  | { readonly submodule: string };

/** A commit of a repository, with every file that it has. */
export interface RepositoryCommit {
  readonly sha: string;
  readonly parents: readonly string[];
  readonly message: string;
  readonly authorId: number;
  readonly createdAt: string;
  readonly tree: ReadonlyMap<string, FakeEntry>;
}

/** What a test writes: text, bytes or an entry; undefined takes the file away. */
export type FakeChanges = Readonly<Record<string, string | Uint8Array | FakeEntry | undefined>>;

/** Commits and branches of one project. */
export class FakeRepository {
  readonly commits = new Map<string, RepositoryCommit>();
  /** Heads by name. */
  readonly branches = new Map<string, string>();
  /** Only Maintainers push to these. */
  readonly protectedBranches = new Set<string>();
  readonly #created = new Map<string, number>();

  /** The commit that a branch or a SHA names. */
  at(ref: string): RepositoryCommit | undefined {
    return this.commits.get(this.branches.get(ref) ?? ref);
  }

  /** Puts a commit on a branch, which begins at `from` where it is new; an orphan when there is none. */
  commit(options: {
    readonly branch: string;
    readonly files: FakeChanges;
    readonly message?: string;
    readonly from?: string;
    /** Further parents: a merge. */
    readonly merges?: readonly string[];
    readonly authorId: number;
    readonly createdAt: string;
  }): RepositoryCommit {
    const { branch, files, message = 'Change', from, merges = [], authorId, createdAt } = options;
    const parent = this.at(branch) ?? (from === undefined ? undefined : this.at(from));
    const tree = new Map(parent?.tree);
    for (const [path, file] of Object.entries(files)) {
      if (file === undefined) tree.delete(path);
      else tree.set(path, entryOf(file));
    }
    const parents = [...(parent === undefined ? [] : [parent.sha]), ...merges];
    const sha = createHash('sha1')
      .update(JSON.stringify([this.commits.size, branch, parents, message]))
      .digest('hex');
    const made = { sha, parents, message, authorId, createdAt, tree };
    this.#created.set(sha, this.commits.size);
    this.commits.set(sha, made);
    this.branches.set(branch, sha);
    return made;
  }

  /** The commit and everything below it, the newest first. */
  history(ref: string): readonly RepositoryCommit[] {
    const seen = new Map<string, RepositoryCommit>();
    const open = [this.at(ref)];
    for (let commit = open.pop(); commit !== undefined; commit = open.pop()) {
      if (seen.has(commit.sha)) continue;
      seen.set(commit.sha, commit);
      open.push(...commit.parents.flatMap((sha) => this.commits.get(sha) ?? []));
    }
    const order = ({ sha }: RepositoryCommit) => this.#created.get(sha) ?? 0;
    return [...seen.values()].sort((a, b) => order(b) - order(a));
  }

  /** Newest commit that both have. */
  mergeBase(one: string, other: string): RepositoryCommit | undefined {
    const below = new Set(this.history(other).map(({ sha }) => sha));
    return this.history(one).find(({ sha }) => below.has(sha));
  }

  /** Newest commit, seen from `ref`, whose file is another than that of its parent. */
  lastCommitOf(ref: string, path: string): RepositoryCommit | undefined {
    return this.history(ref).find(({ tree, parents }) => {
      const entry = tree.get(path);
      return (
        entry !== undefined && parents.every((sha) => !same(this.commits.get(sha)?.tree.get(path), entry))
      );
    });
  }
}

const entryOf = (file: string | Uint8Array | FakeEntry): FakeEntry =>
  typeof file === 'string'
    ? { bytes: Buffer.from(file) }
    : file instanceof Uint8Array
      ? { bytes: file }
      : file;

const same = (one: FakeEntry | undefined, other: FakeEntry): boolean =>
  one !== undefined && JSON.stringify(plain(one)) === JSON.stringify(plain(other));

const plain = (entry: FakeEntry): unknown =>
  'bytes' in entry ? { ...entry, bytes: Buffer.from(entry.bytes).toString('base64') } : entry;

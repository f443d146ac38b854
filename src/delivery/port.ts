/** Files of a repository at one commit, in memory: nothing of a merge request touches the operator's disk. */
export interface RepositoryTree {
  /** Commit that it shows. */
  readonly sha: string;
  /** Every path, sorted, `/` between segments, none leading. */
  readonly paths: readonly string[];
  entry(path: string): TreeEntry | undefined;
}

export type TreeEntry =
  | { readonly kind: 'File'; readonly bytes: Uint8Array; readonly executable: boolean }
  /** Over the size that is read; it is there, and nothing is known of what is in it. */
  | { readonly kind: 'TooLarge'; readonly size: number }
  | { readonly kind: 'Symlink'; readonly target: string }
  | { readonly kind: 'Submodule' };

/** The merge request that moves a version, as far as the agent is to know it. */
export interface Bump {
  readonly project: string;
  readonly iid: number;
  readonly title: string;
  readonly headSha: string;
  /** Newest commit that head and the target branch share; the target's own head proves nothing. */
  readonly baseSha: string;
  readonly sourceBranch: string;
  readonly targetBranch: string;
  readonly labels: readonly string[];
  /** Opened from another project: read, never written to. */
  readonly fork: boolean;
}

export type BumpReading =
  | { readonly kind: 'Bump'; readonly bump: Bump }
  /** GitLab answered 401, 403 or 404, or the merge request has no head or no common commit with its target. */
  | { readonly kind: 'Refused'; readonly message: string };

/** The archive of a commit is too large, damaged, or has more than is read. The message is one sentence. */
export class TreeUnavailableError extends Error {
  override readonly name = 'TreeUnavailableError';
}

/** What the agent reads of a merge request and its repository (tool tier). */
export interface BumpReader {
  /** As GitLab has it now. */
  bump(at: { readonly project: string; readonly iid: number }, signal?: AbortSignal): Promise<BumpReading>;
  /** Bounded in files and bytes, held in memory, links never followed. Throws `TreeUnavailableError`. */
  tree(project: string, sha: string, signal?: AbortSignal): Promise<RepositoryTree>;
}

/** Where a repository says that a chart comes from. */
export interface ChartReference {
  /** `https://…` of an HTTP index, `oci://…`, or `git` for a chart inside a Git repository. */
  readonly repository: string;
  readonly name: string;
  /** As written; a range where it is none of one version. */
  readonly version: string;
}

/** A packed chart: bytes of its `.tgz`, checked against the digest that its source tells, where it tells one. */
export interface ChartArchive {
  readonly reference: ChartReference;
  readonly bytes: Uint8Array;
  /** SHA-256 in lower case hex. */
  readonly sha256: string;
}

/** Could not be fetched, or is not what it says to be. The message is one sentence for people. */
export class ChartUnavailableError extends Error {
  override readonly name = 'ChartUnavailableError';
}

/** Fetches packed charts, through the address allowlist, bounded in size. Throws `ChartUnavailableError`. */
export interface ChartSource {
  fetch(reference: ChartReference, signal?: AbortSignal): Promise<ChartArchive>;
}

export interface HelmRequest {
  readonly chart: Uint8Array;
  /** YAML documents, the last one wins. */
  readonly values: readonly string[];
  readonly release: string;
  readonly namespace: string;
  /** `--api-versions`, besides what helm knows by itself. */
  readonly apiVersions?: readonly string[];
  readonly includeCrds?: boolean;
  /** `--kube-version`; left out: the one that helm was built with. */
  readonly kubeVersion?: string;
}

export type HelmResult =
  | { readonly kind: 'Rendered'; readonly manifests: string }
  /** Values that the chart's own values.schema.json refuses. */
  | { readonly kind: 'SchemaRefused'; readonly message: string }
  | { readonly kind: 'Failed'; readonly reason: HelmFailure; readonly message: string };

export type HelmFailure =
  /** A template or its values; the words are helm's. */
  | 'Template'
  /** A chart that it needs is not in it. */
  | 'Dependency'
  /** It was killed: a template without an end, or one that is too much for this sandbox. */
  | 'Timeout'
  /** It renders more than is read. */
  | 'TooLarge';

/** The real helm, in the sandbox. Throws what the sandbox throws. */
export interface Helm {
  template(request: HelmRequest, signal?: AbortSignal): Promise<HelmResult>;
  /** Several at once, where that costs less than one by one; results in the order of the requests. */
  templates?(requests: readonly HelmRequest[], signal?: AbortSignal): Promise<readonly HelmResult[]>;
}

/** One file of a commit; the guard is on the branch, not on the file. */
export interface FileChange {
  readonly path: string;
  readonly bytes: Uint8Array;
}

export type CommitOutcome =
  | {
      readonly kind: 'Committed';
      readonly sha: string;
      /**
       * The commit below it, where that is not the expected head: a push of other files came between the last look and
       * the commit. It is whole; what was checked is not what the branch now has.
       */
      readonly onto?: string;
    }
  /** The branch has moved since `expectedHead`: nothing was written. */
  | { readonly kind: 'Moved'; readonly message: string }
  | { readonly kind: 'Refused'; readonly status: number; readonly message: string };

/** What the agent writes on a bump (action tier). What may pass is tried again inside; `HttpError` afterwards. */
export interface BumpWriter {
  /**
   * The commit on the bump's branch whose message carries this trailer: one that an earlier process made, and died
   * before it could say so. Looks at the commits that the merge request has.
   */
  ownCommit(bump: Bump, trailer: string, signal?: AbortSignal): Promise<string | undefined>;
  /** Adds and keeps what is there. */
  addLabels(bump: Bump, labels: readonly string[], signal?: AbortSignal): Promise<void>;
  /** Never `failed`: a red status would be a second gate. */
  setStatus(
    bump: Bump,
    status: { readonly state: 'pending' | 'success'; readonly name: string; readonly description: string },
    signal?: AbortSignal,
  ): Promise<void>;
  /** One commit of all files on the bump's branch, only while its head is `expectedHead`. */
  commit(
    bump: Bump,
    commit: {
      readonly message: string;
      readonly files: readonly FileChange[];
      readonly expectedHead: string;
    },
    signal?: AbortSignal,
  ): Promise<CommitOutcome>;
}

/** One question to a model whose answer has to fit a JSON Schema. No conversation, no tools. */
export type Ask = (
  question: {
    /** Of `prompts/delivery/`. */
    readonly system: string;
    readonly user: string;
    /** Name of the schema, for providers that want one. */
    readonly name: string;
    readonly schema: Readonly<Record<string, unknown>>;
  },
  signal?: AbortSignal,
) => Promise<Answer>;

export type Answer =
  /** The parsed JSON value; whether it fits is the reader's to check. */
  | { readonly kind: 'Answered'; readonly value: unknown }
  /** Not one JSON value, also not after fences and thoughts were taken off. */
  | { readonly kind: 'Malformed'; readonly message: string }
  /** The provider could not be reached or refused. */
  | { readonly kind: 'Unreachable'; readonly message: string };

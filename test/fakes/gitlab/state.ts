import { createHash, randomBytes } from 'node:crypto';
import { type FakeChanges, FakeRepository, type RepositoryCommit } from './repository.ts';

export const ACCESS = { none: 0, guest: 10, reporter: 20, developer: 30, maintainer: 40, owner: 50 } as const;

export interface FakeUser {
  readonly id: number;
  readonly username: string;
  readonly name: string;
  readonly bot: boolean;
}

export type Scope = 'api' | 'read_api' | 'read_repository';

export interface FakeToken {
  readonly value: string;
  readonly user: FakeUser;
  readonly scopes: readonly Scope[];
  /** A project bot's token opens its own project only. */
  readonly kind: 'personal' | 'project';
  revoked: boolean;
}

export interface FakeNote {
  readonly id: number;
  readonly author: FakeUser;
  body: string;
  readonly system: boolean;
  readonly internal: boolean;
  /** Place in the diff that the note is about. */
  readonly position: FakePosition | undefined;
  readonly createdAt: string;
  updatedAt: string;
  resolved: boolean;
  resolvedBy: FakeUser | undefined;
}

export interface FakePosition {
  readonly newPath: string;
  readonly newLine: number;
}

export interface FakeDiscussion {
  /** 40 hex digits. */
  readonly id: string;
  /** A plain comment that nobody has answered yet: not resolvable. */
  individualNote: boolean;
  readonly notes: FakeNote[];
}

export interface FakeDiff {
  readonly oldPath: string;
  readonly newPath: string;
  readonly diff: string;
  readonly newFile: boolean;
  readonly renamedFile: boolean;
  readonly deletedFile: boolean;
  readonly collapsed: boolean;
  readonly tooLarge: boolean;
  readonly generated: boolean;
}

export interface FakeCommit {
  readonly sha: string;
  readonly title: string;
  /** The title alone where it is left out. */
  readonly message?: string;
  readonly parents?: readonly string[];
  readonly author: FakeUser;
  readonly createdAt: string;
}

/** A quick action that a note carried out, or tried to. */
export interface ExecutedCommand {
  readonly name: string;
  readonly argument: string;
  readonly by: string;
  readonly applied: boolean;
}

export interface FakeMergeRequest {
  readonly id: number;
  readonly iid: number;
  readonly project: FakeProject;
  /** Where the source branch is; null: its project is gone. */
  sourceProject: FakeProject | null;
  title: string;
  description: string;
  state: 'opened' | 'closed' | 'merged' | 'locked';
  draft: boolean;
  sourceBranch: string;
  targetBranch: string;
  readonly author: FakeUser;
  /** Head commit. */
  sha: string;
  baseSha: string;
  labels: string[];
  assignees: FakeUser[];
  reviewers: FakeUser[];
  readonly commits: FakeCommit[];
  diffs: FakeDiff[];
  /** GitLab stopped counting: `changes_count` ends in `+`, `overflow` is true. */
  overflow: boolean;
  readonly discussions: FakeDiscussion[];
  readonly createdAt: string;
  updatedAt: string;
  /** Every quick action that GitLab took out of a note of this merge request. */
  readonly commands: ExecutedCommand[];
}

export interface FakePipeline {
  readonly id: number;
  readonly iid: number;
  readonly project: FakeProject;
  readonly ref: string;
  readonly sha: string;
  readonly source: string;
  status: string;
  readonly user: FakeUser;
  readonly mergeRequest: FakeMergeRequest | undefined;
  readonly jobs: FakeJob[];
  readonly createdAt: string;
}

export interface FakeJob {
  readonly id: number;
  readonly pipeline: FakePipeline;
  readonly name: string;
  readonly stage: string;
  status: string;
  readonly allowFailure: boolean;
  /** Undefined: erased or never written, GitLab answers with an empty text. A function makes it while it is sent. */
  readonly trace: Uint8Array | (() => Iterable<Uint8Array>) | undefined;
  readonly failureReason: string | undefined;
}

export interface FakeStatus {
  readonly id: number;
  readonly sha: string;
  readonly ref: string;
  readonly status: string;
  readonly name: string;
  readonly targetUrl: string;
  readonly description: string | null;
  readonly allowFailure: boolean;
  readonly pipelineId: number;
  readonly author: FakeUser;
}

export interface FakeProject {
  readonly id: number;
  /** `group/app`. */
  readonly path: string;
  readonly visibility: 'private' | 'internal' | 'public';
  readonly defaultBranch: string;
  readonly members: Map<number, number>;
  readonly mergeRequests: Map<number, FakeMergeRequest>;
  readonly pipelines: FakePipeline[];
  readonly statuses: FakeStatus[];
  /** By ref (branch or SHA), then by path. */
  readonly files: Map<string, Map<string, Uint8Array>>;
  /** Commits and branches, where a test needs more than files. */
  readonly repository: FakeRepository;
  /** Instead of the files as `.tar.gz`: any bytes, made while they are sent. */
  archive: (() => Iterable<Uint8Array>) | undefined;
  /** Where archives and traces are kept: GitLab answers with a redirect to a signed address below it. */
  objectStorage: string | undefined;
}

type Options<T, Required extends keyof T> = Partial<T> & Pick<T, Required>;

/** Everything that the stand-in knows. Tests build it with these methods and read it directly. */
export class GitLabState {
  readonly users: FakeUser[] = [];
  readonly tokens = new Map<string, FakeToken>();
  readonly projects: FakeProject[] = [];
  readonly #now: () => number;
  #lastId = 1000;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  time(): string {
    return new Date(this.#now()).toISOString();
  }

  user(options: Options<FakeUser, 'username'>): FakeUser {
    const user = { id: this.nextId(), name: options.username, bot: false, ...options };
    this.users.push(user);
    return user;
  }

  token(options: {
    user: FakeUser;
    scopes?: readonly Scope[];
    value?: string;
    kind?: FakeToken['kind'];
  }): string {
    const value = options.value ?? `glpat-${randomBytes(10).toString('hex')}`;
    const { user, scopes = ['api'], kind = 'personal' } = options;
    this.tokens.set(value, { value, user, scopes, kind, revoked: false });
    return value;
  }

  project(
    options: Options<Pick<FakeProject, 'id' | 'path' | 'visibility' | 'defaultBranch'>, 'path'>,
  ): FakeProject {
    const project: FakeProject = {
      id: this.nextId(),
      visibility: 'private',
      defaultBranch: 'main',
      members: new Map(),
      mergeRequests: new Map(),
      pipelines: [],
      statuses: [],
      files: new Map(),
      repository: new FakeRepository(),
      archive: undefined,
      objectStorage: undefined,
      ...options,
    };
    this.projects.push(project);
    return project;
  }

  member(project: FakeProject, user: FakeUser, level: number): void {
    project.members.set(user.id, level);
  }

  /** A project access token with the bot user that GitLab makes for it. */
  projectBot(
    project: FakeProject,
    options: { name?: string; level?: number; scopes?: readonly Scope[]; value?: string } = {},
  ): { user: FakeUser; token: string } {
    const suffix = randomBytes(16).toString('hex');
    const user = this.user({
      username: `project_${project.id}_bot_${suffix}`,
      name: options.name ?? 'bot',
      bot: true,
    });
    this.member(project, user, options.level ?? ACCESS.developer);
    const { scopes = ['api'], value } = options;
    return { user, token: this.token({ user, scopes, kind: 'project', ...(value ? { value } : {}) }) };
  }

  mergeRequest(
    project: FakeProject,
    options: Options<Omit<FakeMergeRequest, 'project'>, 'author'>,
  ): FakeMergeRequest {
    const iid = options.iid ?? project.mergeRequests.size + 1;
    const { repository } = options.sourceProject ?? project;
    const { sourceBranch = `feature-${iid}`, targetBranch = project.defaultBranch } = options;
    const head = repository.at(sourceBranch);
    const sha = options.sha ?? head?.sha ?? this.sha(`${project.path}!${iid}`);
    const time = this.time();
    const mergeRequest: FakeMergeRequest = {
      id: this.nextId(),
      sourceProject: project,
      title: `Change ${iid}`,
      description: '',
      state: 'opened',
      draft: false,
      sourceBranch,
      targetBranch,
      baseSha: this.sha(`${project.path}@${project.defaultBranch}`),
      labels: [],
      assignees: [],
      reviewers: [],
      commits: [{ sha, title: options.title ?? `Change ${iid}`, author: options.author, createdAt: time }],
      diffs: [],
      overflow: false,
      discussions: [],
      createdAt: time,
      updatedAt: time,
      commands: [],
      ...options,
      sha,
      iid,
      project,
    };
    project.mergeRequests.set(iid, mergeRequest);
    if (head !== undefined) this.#follow(mergeRequest);
    return mergeRequest;
  }

  diff(options: Options<FakeDiff, 'newPath' | 'diff'>): FakeDiff {
    return {
      oldPath: options.newPath,
      newFile: false,
      renamedFile: false,
      deletedFile: false,
      collapsed: false,
      tooLarge: false,
      generated: false,
      ...options,
    };
  }

  /** A commit on a branch, as somebody pushed it; merge requests from that branch follow. */
  commit(
    project: FakeProject,
    options: {
      readonly branch: string;
      readonly files: FakeChanges;
      readonly message?: string;
      /** Where a new branch begins. */
      readonly from?: string;
      readonly merges?: readonly string[];
      readonly author?: FakeUser;
    },
  ): RepositoryCommit {
    const { author, ...rest } = options;
    const made = project.repository.commit({ ...rest, authorId: author?.id ?? 0, createdAt: this.time() });
    for (const { mergeRequests } of this.projects)
      for (const mergeRequest of mergeRequests.values())
        if (mergeRequest.sourceProject === project && mergeRequest.sourceBranch === options.branch)
          this.#follow(mergeRequest);
    return made;
  }

  /** Head, base and commits, out of the repository. */
  #follow(mergeRequest: FakeMergeRequest): void {
    const { project, sourceBranch, targetBranch, author } = mergeRequest;
    const { repository } = mergeRequest.sourceProject ?? project;
    // The target project keeps the commits of a fork's merge requests.
    if (repository !== project.repository)
      for (const commit of repository.history(sourceBranch))
        project.repository.commits.set(commit.sha, commit);
    const head = repository.at(sourceBranch);
    if (head === undefined) return;
    const below = new Set(project.repository.history(targetBranch).map(({ sha }) => sha));
    mergeRequest.sha = head.sha;
    mergeRequest.baseSha = project.repository.mergeBase(head.sha, targetBranch)?.sha ?? mergeRequest.baseSha;
    mergeRequest.updatedAt = this.time();
    mergeRequest.commits.splice(
      0,
      mergeRequest.commits.length,
      ...repository
        .history(head.sha)
        .filter(({ sha }) => !below.has(sha))
        .toReversed()
        .map(({ sha, message, parents, authorId, createdAt }) => ({
          sha,
          title: message.split('\n')[0] ?? '',
          message,
          parents,
          author: this.users.find(({ id }) => id === authorId) ?? author,
          createdAt,
        })),
    );
  }

  /** Moves the source branch to a new head. */
  push(
    mergeRequest: FakeMergeRequest,
    options: { sha?: string; title?: string; author?: FakeUser } = {},
  ): string {
    const sha = options.sha ?? this.sha(`${mergeRequest.sha} and ${mergeRequest.commits.length}`);
    const { title = 'Another change', author = mergeRequest.author } = options;
    mergeRequest.commits.push({ sha, title, author, createdAt: this.time() });
    mergeRequest.sha = sha;
    mergeRequest.updatedAt = this.time();
    return sha;
  }

  pipeline(
    project: FakeProject,
    options: Options<Omit<FakePipeline, 'project' | 'jobs'>, 'user'>,
  ): FakePipeline {
    const mergeRequest = options.mergeRequest;
    const pipeline: FakePipeline = {
      id: this.nextId(),
      iid: project.pipelines.length + 1,
      ref: mergeRequest ? `refs/merge-requests/${mergeRequest.iid}/head` : project.defaultBranch,
      sha: mergeRequest?.sha ?? this.sha(project.path),
      source: mergeRequest ? 'merge_request_event' : 'push',
      status: 'failed',
      createdAt: this.time(),
      mergeRequest,
      ...options,
      project,
      jobs: [],
    };
    project.pipelines.push(pipeline);
    return pipeline;
  }

  job(
    pipeline: FakePipeline,
    options: Partial<Omit<FakeJob, 'trace' | 'pipeline'>> & {
      name: string;
      trace?: string | NonNullable<FakeJob['trace']>;
    },
  ): FakeJob {
    const { trace, ...rest } = options;
    const job: FakeJob = {
      id: this.nextId(),
      stage: 'test',
      status: 'failed',
      allowFailure: false,
      failureReason: undefined,
      ...rest,
      pipeline,
      trace: typeof trace === 'string' ? Buffer.from(trace) : trace,
    };
    pipeline.jobs.push(job);
    return job;
  }

  /** A commit status that an outside system (Konflux, Jenkins) has reported. */
  status(project: FakeProject, options: Options<FakeStatus, 'sha' | 'name' | 'author'>): FakeStatus {
    const status: FakeStatus = {
      id: this.nextId(),
      ref: project.defaultBranch,
      status: 'success',
      targetUrl: `https://ci.example.org/${options.name}`,
      description: null,
      allowFailure: false,
      pipelineId: project.pipelines.at(-1)?.id ?? this.nextId(),
      ...options,
    };
    project.statuses.push(status);
    return status;
  }

  /** A note as somebody wrote it in the browser; quick actions in it are not carried out. */
  note(
    mergeRequest: FakeMergeRequest,
    options: {
      author: FakeUser;
      body: string;
      discussion?: FakeDiscussion;
      internal?: boolean;
      system?: boolean;
      individual?: boolean;
      position?: FakePosition;
    },
  ): { discussion: FakeDiscussion; note: FakeNote } {
    const time = this.time();
    const note: FakeNote = {
      id: this.nextId(),
      author: options.author,
      body: options.body,
      system: options.system ?? false,
      internal: options.discussion?.notes[0]?.internal ?? options.internal ?? false,
      position: options.position,
      createdAt: time,
      updatedAt: time,
      resolved: false,
      resolvedBy: undefined,
    };
    const discussion = options.discussion ?? {
      id: createHash('sha1').update(`discussion ${note.id}`).digest('hex'),
      individualNote: options.individual ?? note.system,
      notes: [],
    };
    if (options.discussion) discussion.individualNote = false;
    else mergeRequest.discussions.push(discussion);
    discussion.notes.push(note);
    mergeRequest.updatedAt = time;
    return { discussion, note };
  }

  file(project: FakeProject, ref: string, path: string, content: string | Uint8Array): void {
    const files = project.files.get(ref) ?? new Map<string, Uint8Array>();
    project.files.set(ref, files);
    files.set(path, typeof content === 'string' ? Buffer.from(content) : content);
  }

  /** A stable commit id. */
  sha(seed: string): string {
    return createHash('sha1').update(seed).digest('hex');
  }
}

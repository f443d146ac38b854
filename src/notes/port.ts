import type { ActionToken, OrchestratorToken } from '../settings/tokens.ts';

export interface MergeRequestRef {
  /** Full path, `group/app`. */
  readonly project: string;
  readonly iid: number;
}

export interface NoteRef {
  readonly discussionId: string;
  readonly noteId: number;
  readonly url: string;
}

/** Signed content of the HTML comment that stands last in every note of ours. */
export interface Marker {
  /** Session id. */
  readonly id: string;
  readonly wf: string;
  /** Commit that an automatic run looks at; runs that people ask for have none, and do not count. */
  readonly sha?: string;
  /** uid of the AgentRun that wrote the note. */
  readonly run?: string;
}

export type ParsedMarker =
  | { readonly kind: 'Signed'; readonly marker: Marker }
  /** From before markers were signed, and the operator is told to take them. `wf` is empty in the oldest form. */
  | { readonly kind: 'Accepted'; readonly marker: Marker }
  /** The same, and it is not; or it names no session. */
  | { readonly kind: 'Unsigned' }
  /** Carries a signature that no key of ours made. */
  | { readonly kind: 'Forged' };

export type NoteOutcome<T> =
  | { readonly kind: 'Ok'; readonly value: T }
  /** GitLab answered 401, 403 or 404: waiting does not help. */
  | { readonly kind: 'Refused'; readonly status: number; readonly message: string };

/** The bot's notes on one project (action tier). Retryable failures throw `HttpError` after their retries. */
export interface Notes {
  /** `GET /user` of the token, cached. */
  botUserId(): Promise<NoteOutcome<number>>;
  /** Own note that carries this run's marker, if GitLab has one: the search before a POST. */
  findByRun(mergeRequest: MergeRequestRef, runUid: string): Promise<NoteOutcome<NoteRef | undefined>>;
  /** A new top-level discussion, or a reply in `discussionId`. Never retried inside: the caller searches first. */
  create(
    mergeRequest: MergeRequestRef,
    note: {
      readonly text: string;
      readonly marker: Marker;
      readonly internal: boolean;
      readonly discussionId?: string;
    },
  ): Promise<NoteOutcome<NoteRef>>;
  /** Replaces the text; the marker is written again. */
  update(
    mergeRequest: MergeRequestRef,
    ref: NoteRef,
    note: { readonly text: string; readonly marker: Marker },
    signal?: AbortSignal,
  ): Promise<NoteOutcome<NoteRef>>;
  /** What automatic runs of a workflow have left here, read in one pass over the discussions. */
  threadsOf(mergeRequest: MergeRequestRef, workflow: string): Promise<NoteOutcome<AgentThreads>>;
  /**
   * Resolves the discussions that this bot began for `workflow` and that are still open, and says how many. Those
   * that look at `exceptSha` stay. May be repeated.
   */
  resolveThreads(
    mergeRequest: MergeRequestRef,
    which: { readonly workflow: string; readonly exceptSha?: string },
  ): Promise<NoteOutcome<number>>;
}

/** Discussions with a marker of this bot's that names the workflow and a commit. */
export interface AgentThreads {
  readonly count: number;
  /** Commits that were looked at, each with the uids of the runs that did. */
  readonly commits: ReadonlyMap<string, ReadonlySet<string>>;
}

export interface NotesFactory {
  notesFor(project: string, token: ActionToken): Notes;
}

export interface MergeRequestFacts {
  readonly projectId: number;
  readonly iid: number;
  readonly title: string;
  readonly state: string;
  readonly draft: boolean;
  readonly sha: string;
  readonly sourceBranch: string;
  readonly targetBranch: string;
  readonly webUrl: string;
  readonly authorId: number;
  /** Pipeline of the head commit; undefined while there is none. */
  readonly headPipelineId: number | undefined;
  /** Project of the source branch, another one for forks; undefined when it is gone. */
  readonly sourceProjectId: number | undefined;
}

export interface GitLabUser {
  readonly id: number;
  /** User name, without `@`. */
  readonly name: string;
}

/** What the operator itself asks GitLab (orchestrator tier). */
export interface MergeRequests {
  get(mergeRequest: MergeRequestRef, signal?: AbortSignal): Promise<NoteOutcome<MergeRequestFacts>>;
  /** Access level of a user in the project (inherited ones included), 0 when none. */
  accessLevel(project: string, userId: number, signal?: AbortSignal): Promise<NoteOutcome<number>>;
  /** Who pushed to the source branch last; undefined when GitLab does not remember. */
  pushAuthor(
    facts: Pick<MergeRequestFacts, 'sourceProjectId' | 'sourceBranch'>,
    signal?: AbortSignal,
  ): Promise<NoteOutcome<GitLabUser | undefined>>;
}

export interface MergeRequestsFactory {
  mergeRequestsWith(token: OrchestratorToken): MergeRequests;
}

export interface ThreadNote {
  readonly noteId: number;
  readonly authorId: number;
  readonly system: boolean;
  /** What stands last in the note. It proves nothing unless one of our bots wrote the note. */
  readonly marker: ParsedMarker | undefined;
}

/** Discussions as the operator itself reads and answers them (orchestrator tier). */
export interface Threads {
  /** Resolves when GitLab answers, to whatever effect. Throws while it does not. */
  ping(signal?: AbortSignal): Promise<void>;
  /** `GET /user` of the token, cached. */
  botUserId(signal?: AbortSignal): Promise<NoteOutcome<number>>;
  /** Notes of a discussion, in their order. */
  read(
    mergeRequest: MergeRequestRef,
    discussionId: string,
    signal?: AbortSignal,
  ): Promise<NoteOutcome<readonly ThreadNote[]>>;
  /**
   * A few words of our own in the discussion of `noteId`, as public as that is, and once for each `noteId`: what an
   * earlier call posted is found again. `text` is Markdown and may quote people.
   */
  answer(
    mergeRequest: MergeRequestRef,
    to: { readonly discussionId: string; readonly noteId: number },
    text: string,
    signal?: AbortSignal,
  ): Promise<NoteOutcome<'Posted' | 'Found'>>;
  /** Words on the merge request that answer nobody, once for each `key`. */
  notice(
    mergeRequest: MergeRequestRef,
    notice: { readonly key: string; readonly text: string; readonly internal: boolean },
    signal?: AbortSignal,
  ): Promise<NoteOutcome<'Posted' | 'Found'>>;
}

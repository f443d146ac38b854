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
  readonly sha?: string;
  /** uid of the AgentRun that wrote the note. */
  readonly run?: string;
}

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
  ): Promise<NoteOutcome<NoteRef>>;
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
}

/** What the operator itself asks GitLab (orchestrator tier). */
export interface MergeRequests {
  get(mergeRequest: MergeRequestRef, signal?: AbortSignal): Promise<NoteOutcome<MergeRequestFacts>>;
  /** Access level of a user in the project (inherited ones included), 0 when none. */
  accessLevel(project: string, userId: number, signal?: AbortSignal): Promise<NoteOutcome<number>>;
}

export interface MergeRequestsFactory {
  mergeRequestsWith(token: OrchestratorToken): MergeRequests;
}

import { z } from 'zod';
import {
  commitId,
  type EventProject,
  type EventUser,
  id,
  project,
  projectOf,
  user,
  userOf,
} from './shapes.ts';

/** A note webhook as the decisions see it. */
export interface NoteEvent {
  readonly kind: 'Note';
  readonly noteId: number;
  readonly discussionId: string;
  /** As it was written. */
  readonly text: string;
  /** `create` or `update`; empty when GitLab did not say, as older ones do not. */
  readonly action: string;
  /** What the note is about: `MergeRequest`, `Commit`, `Issue`, `Snippet`. */
  readonly on: string;
  /** GitLab's own words about what happened. */
  readonly system: boolean;
  /** False for a comment that stands alone: it answers nobody. */
  readonly inDiscussion: boolean;
  readonly project: EventProject;
  readonly author: EventUser;
  /** Undefined when the note is about something else. */
  readonly mergeRequest:
    | {
        readonly iid: number;
        readonly targetProjectId: number;
        /** Head commit at the time of the note, where GitLab says it. */
        readonly sha: string | undefined;
      }
    | undefined;
}

export const noteShape = z
  .object({
    object_kind: z.literal('note'),
    object_attributes: z.object({
      id,
      note: z.string(),
      noteable_type: z.string(),
      discussion_id: z.string().nullish(),
      author_id: id.nullish(),
      action: z.string().nullish(),
      system: z.boolean().nullish(),
      // Null for a comment that stands alone, DiscussionNote or DiffNote otherwise.
      type: z.string().nullish(),
    }),
    // One hook is shared by notes on merge requests, commits, issues and snippets.
    merge_request: z
      .object({
        iid: id,
        target_project_id: id.nullish(),
        last_commit: z.object({ id: commitId }).nullish(),
      })
      .nullish(),
    user,
    project,
  })
  .transform(
    ({ object_attributes: note, merge_request: mergeRequest, ...rest }): NoteEvent => ({
      kind: 'Note',
      noteId: note.id,
      discussionId: note.discussion_id ?? '',
      text: note.note,
      action: note.action ?? '',
      on: note.noteable_type,
      system: note.system ?? false,
      inDiscussion: note.type !== null && note.type !== undefined,
      project: projectOf(rest.project),
      // Whoever caused the event is the author as long as the note is new.
      author: { ...userOf(rest.user), id: note.author_id ?? rest.user.id },
      mergeRequest: mergeRequest
        ? {
            iid: mergeRequest.iid,
            targetProjectId: mergeRequest.target_project_id ?? rest.project.id,
            sha: mergeRequest.last_commit?.id,
          }
        : undefined,
    }),
  );

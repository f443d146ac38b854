import { z } from 'zod';
import {
  commitId,
  type EventMergeRequest,
  type EventProject,
  type EventUser,
  id,
  project,
  projectOf,
  user,
  userOf,
} from './shapes.ts';

/** A merge request webhook as the decisions see it. */
export interface MergeRequestEvent {
  readonly kind: 'MergeRequest';
  /** `open`, `reopen`, `update`, `close`, `merge`, `approved`…; empty when GitLab did not say. */
  readonly action: string;
  /** `opened`, `closed`, `merged`, `locked`. */
  readonly state: string;
  readonly draft: boolean;
  /** Head commit; undefined while GitLab prepares a new merge request. */
  readonly sha: string | undefined;
  readonly labels: readonly string[];
  readonly authorId: number | undefined;
  /** Whether the event is a push: GitLab then names the head before it. */
  readonly pushed: boolean;
  readonly project: EventProject;
  readonly user: EventUser | undefined;
  readonly mergeRequest: EventMergeRequest;
}

export const mergeRequestShape = z
  .object({
    object_kind: z.literal('merge_request'),
    object_attributes: z.object({
      iid: id,
      title: z.string().nullish(),
      action: z.string().nullish(),
      state: z.string().nullish(),
      draft: z.boolean().nullish(),
      work_in_progress: z.boolean().nullish(),
      target_branch: z.string(),
      target_project_id: id.nullish(),
      oldrev: z.string().nullish(),
      author_id: id.nullish(),
      labels: z.array(z.object({ title: z.string() })).nullish(),
      last_commit: z.object({ id: commitId }).nullish(),
    }),
    labels: z.array(z.object({ title: z.string() })).nullish(),
    user: user.nullish(),
    project,
  })
  .transform(
    ({ object_attributes: given, ...rest }): MergeRequestEvent => ({
      kind: 'MergeRequest',
      action: given.action ?? '',
      state: given.state ?? '',
      // The older name says the same; where both stand, it may be stale.
      draft: given.draft ?? given.work_in_progress ?? false,
      sha: given.last_commit?.id,
      labels: (given.labels ?? rest.labels ?? []).map(({ title }) => title),
      authorId: given.author_id ?? undefined,
      pushed: given.oldrev !== undefined && given.oldrev !== null && given.oldrev !== '',
      project: projectOf(rest.project),
      user: rest.user ? userOf(rest.user) : undefined,
      mergeRequest: {
        iid: given.iid,
        title: given.title ?? '',
        targetBranch: given.target_branch,
        targetProjectId: given.target_project_id ?? rest.project.id,
      },
    }),
  );

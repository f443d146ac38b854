import { z } from 'zod';

/** GitLab's user in a webhook; the id is what access checks use, the name is what rules match. */
export const user = z.object({ id: z.int().positive(), username: z.string().min(1) });

export const project = z.object({ id: z.int().positive(), path_with_namespace: z.string().min(1) });

export const commitId = z.string().regex(/^[0-9a-f]{40}([0-9a-f]{24})?$/, 'not a commit id');

export const id = z.int().positive();

export interface EventUser {
  readonly id: number;
  /** User name. */
  readonly name: string;
}

export interface EventProject {
  readonly id: number;
  /** Full path. */
  readonly path: string;
}

/** What an event tells of its merge request. */
export interface EventMergeRequest {
  readonly iid: number;
  readonly title: string;
  readonly targetBranch: string;
  /** The project whose merge request this is; differs from the event's for what happened in a fork. */
  readonly targetProjectId: number;
}

export const userOf = (given: z.infer<typeof user>): EventUser => ({ id: given.id, name: given.username });

export const projectOf = (given: z.infer<typeof project>): EventProject => ({
  id: given.id,
  path: given.path_with_namespace,
});

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

/** A pipeline webhook as the decisions see it. */
export interface PipelineEvent {
  readonly kind: 'Pipeline';
  readonly pipelineId: number;
  readonly status: string;
  /** `merge_request_event`, `push`, `parent_pipeline`…; empty when GitLab did not say. */
  readonly source: string;
  readonly sha: string;
  readonly project: EventProject;
  readonly user: EventUser | undefined;
  readonly mergeRequest: EventMergeRequest | undefined;
}

export const pipelineShape = z
  .object({
    object_kind: z.literal('pipeline'),
    object_attributes: z.object({
      id,
      status: z.string().min(1),
      source: z.string().nullish(),
      sha: commitId,
      url: z.string().nullish(),
    }),
    // Null for pushes, tags, child pipelines and the test button of GitLab's settings page.
    merge_request: z
      .object({
        iid: id,
        title: z.string().nullish(),
        target_branch: z.string(),
        target_project_id: id.nullish(),
      })
      .nullish(),
    user: user.nullish(),
    project,
  })
  .transform(
    ({ object_attributes: pipeline, merge_request: mergeRequest, ...rest }): PipelineEvent => ({
      kind: 'Pipeline',
      pipelineId: pipeline.id,
      status: pipeline.status,
      source: pipeline.source ?? '',
      sha: pipeline.sha,
      project: projectOf(rest.project),
      user: rest.user ? userOf(rest.user) : undefined,
      mergeRequest: mergeRequest
        ? {
            iid: mergeRequest.iid,
            title: mergeRequest.title ?? '',
            targetBranch: mergeRequest.target_branch,
            targetProjectId: mergeRequest.target_project_id ?? rest.project.id,
          }
        : undefined,
    }),
  );

import { z } from 'zod';

/** GitLab's user in a webhook; the id is what access checks use, the name is what rules match. */
const user = z.object({ id: z.int().positive(), username: z.string().min(1) });

const project = z.object({ id: z.int().positive(), path_with_namespace: z.string().min(1) });

const pipelineMergeRequest = z.object({
  iid: z.int().positive(),
  title: z.string().nullish(),
  target_branch: z.string(),
  target_project_id: z.int().positive().nullish(),
});

const pipelineShape = z.object({
  object_kind: z.literal('pipeline'),
  object_attributes: z.object({
    id: z.int().positive(),
    status: z.string().min(1),
    source: z.string().nullish(),
    sha: z.string().regex(/^[0-9a-f]{40}([0-9a-f]{24})?$/, 'not a commit id'),
    url: z.string().nullish(),
  }),
  // Null for pushes, tags, child pipelines and the test button of GitLab's settings page.
  merge_request: pipelineMergeRequest.nullish(),
  user: user.nullish(),
  project,
});

/** A pipeline webhook as the decisions see it. */
export interface PipelineEvent {
  readonly kind: 'Pipeline';
  readonly pipelineId: number;
  readonly status: string;
  /** `merge_request_event`, `push`, `parent_pipeline`…; empty when GitLab did not say. */
  readonly source: string;
  readonly sha: string;
  readonly project: { readonly id: number; readonly path: string };
  readonly user: { readonly id: number; readonly name: string } | undefined;
  readonly mergeRequest:
    | {
        readonly iid: number;
        readonly title: string;
        readonly targetBranch: string;
        /** The project whose merge request this is; differs from `project.id` for a pipeline that ran in a fork. */
        readonly targetProjectId: number;
      }
    | undefined;
}

export type ParsedEvent =
  | { readonly ok: true; readonly event: PipelineEvent }
  /** A kind of event that nothing here handles. */
  | { readonly ok: true; readonly event: { readonly kind: 'Other'; readonly what: string } }
  /** A pipeline event without what a decision needs; `message` names the fields. */
  | { readonly ok: false; readonly message: string };

/** From an envelope's attributes and payload to an event. Never throws. */
export function parseEvent(envelope: {
  readonly source: string;
  readonly eventType: string;
  readonly payload: unknown;
}): ParsedEvent {
  if (envelope.source !== 'gitlab' || envelope.eventType !== 'pipeline') {
    return {
      ok: true,
      event: { kind: 'Other', what: `${envelope.source}/${envelope.eventType}`.slice(0, 128) },
    };
  }
  const parsed = pipelineShape.safeParse(envelope.payload);
  if (!parsed.success)
    return { ok: false, message: `payload of gitlab/pipeline: ${z.prettifyError(parsed.error)}` };
  const { object_attributes: pipeline, merge_request: mergeRequest, ...rest } = parsed.data;
  return {
    ok: true,
    event: {
      kind: 'Pipeline',
      pipelineId: pipeline.id,
      status: pipeline.status,
      source: pipeline.source ?? '',
      sha: pipeline.sha,
      project: { id: rest.project.id, path: rest.project.path_with_namespace },
      user: rest.user ? { id: rest.user.id, name: rest.user.username } : undefined,
      mergeRequest: mergeRequest
        ? {
            iid: mergeRequest.iid,
            title: mergeRequest.title ?? '',
            targetBranch: mergeRequest.target_branch,
            targetProjectId: mergeRequest.target_project_id ?? rest.project.id,
          }
        : undefined,
    },
  };
}

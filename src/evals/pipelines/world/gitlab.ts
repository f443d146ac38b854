import type { PipelineCase } from '../pipeline-case.ts';
import {
  BASE_SHA,
  GITLAB_URL,
  isReadableRef,
  jobId,
  jobUrl,
  PIPELINE_ID,
  SCOPE,
  TARGET_BRANCH,
} from './places.ts';
import { json, type Route, text } from './routes.ts';

/** What GitLab would answer of the merge request. Anything else is not there. */
export function gitlabRoutes(one: PipelineCase): readonly Route[] {
  const project = `/api/v4/projects/${encodeURIComponent(SCOPE.project)}`;
  const mergeRequest = `${project}/merge_requests/${SCOPE.iid}`;
  const at = (path: string, answer: Route['answer']): Route => ({ origin: GITLAB_URL, path, answer });
  return [
    at(mergeRequest, () => json(details(one))),
    at(`${mergeRequest}/diffs`, () => json(one.changes.map(change))),
    at(`${mergeRequest}/discussions`, () => json([])),
    at(`${project}/repository/commits/${SCOPE.sha}/statuses`, () => json(statuses(one))),
    ...one.jobs.flatMap((job, index) =>
      job.external === undefined
        ? [
            at(`${project}/jobs/${jobId(index)}`, () => json(jobOf(index))),
            ...(job.log === undefined
              ? []
              : [at(`${project}/jobs/${jobId(index)}/trace`, () => text(job.log ?? ''))]),
          ]
        : [],
    ),
    ...Object.entries(one.files).map(([path, content]) =>
      at(`${project}/repository/files/${encodeURIComponent(path)}/raw`, (query) =>
        isReadableRef(query.get('ref') ?? '') ? text(content) : undefined,
      ),
    ),
  ];
}

function details({ title, description, changes, fork }: PipelineCase) {
  return {
    iid: SCOPE.iid,
    title,
    description,
    state: 'opened',
    draft: false,
    author: { username: 'robin', name: 'Robin' },
    sha: SCOPE.sha,
    source_branch: 'topic',
    target_branch: TARGET_BRANCH,
    labels: fork ? ['fork'] : [],
    web_url: `${GITLAB_URL}/${SCOPE.project}/-/merge_requests/${SCOPE.iid}`,
    created_at: '2026-11-02T08:00:00Z',
    updated_at: '2026-11-02T09:00:00Z',
    changes_count: String(changes.length),
    diff_refs: { base_sha: BASE_SHA, head_sha: SCOPE.sha },
    head_pipeline: {
      id: PIPELINE_ID,
      status: 'failed',
      web_url: `${GITLAB_URL}/${SCOPE.project}/-/pipelines/${PIPELINE_ID}`,
    },
  };
}

const change = ({ path, diff }: PipelineCase['changes'][number]) => ({
  old_path: path,
  new_path: path,
  new_file: diff.startsWith('@@ -0,0 '),
  renamed_file: false,
  deleted_file: false,
  diff,
});

const statuses = ({ jobs }: PipelineCase) =>
  jobs.map(({ name, status, allowFailure, description, external }, index) => ({
    id: jobId(index),
    name,
    status,
    sha: SCOPE.sha,
    ref: 'topic',
    target_url: external ?? jobUrl(index),
    allow_failure: allowFailure,
    description: description ?? null,
  }));

const jobOf = (index: number) => ({
  id: jobId(index),
  ref: 'topic',
  commit: { id: SCOPE.sha },
  pipeline: { ref: 'topic', sha: SCOPE.sha },
});

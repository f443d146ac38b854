import { mergeRequestUrl } from './entities.ts';
import type {
  FakeDiscussion,
  FakeMergeRequest,
  FakeNote,
  FakePipeline,
  FakeProject,
  FakeUser,
} from './state.ts';

/** Bodies as GitLab sends them to a webhook, from what stands in the state. `base` is the GitLab's URL. */

export function pipelineHook(base: string, pipeline: FakePipeline) {
  const { project, mergeRequest } = pipeline;
  return {
    object_kind: 'pipeline',
    object_attributes: {
      id: pipeline.id,
      iid: pipeline.iid,
      name: null,
      // The branch, unlike the API, which names the merge request's ref.
      ref: mergeRequest?.sourceBranch ?? pipeline.ref,
      tag: false,
      sha: pipeline.sha,
      before_sha: '0'.repeat(40),
      source: pipeline.source,
      status: pipeline.status,
      detailed_status: pipeline.status === 'success' ? 'passed' : pipeline.status,
      stages: [...new Set(pipeline.jobs.map(({ stage }) => stage))],
      created_at: hookTime(pipeline.createdAt),
      finished_at: hookTime(pipeline.createdAt),
      duration: 63,
      queued_duration: 2,
      protected_ref: false,
      variables: [],
      url: `${base}/${project.path}/-/pipelines/${pipeline.id}`,
    },
    merge_request: mergeRequest
      ? {
          id: mergeRequest.id,
          iid: mergeRequest.iid,
          title: title(mergeRequest),
          source_branch: mergeRequest.sourceBranch,
          source_project_id: project.id,
          target_branch: mergeRequest.targetBranch,
          target_project_id: project.id,
          state: mergeRequest.state,
          merge_status: 'can_be_merged',
          detailed_merge_status: 'mergeable',
          url: mergeRequestUrl(base, mergeRequest),
        }
      : null,
    user: hookUser(pipeline.user),
    project: hookProject(base, project),
    commit: hookCommit(base, project, pipeline.sha, pipeline.user),
    builds: pipeline.jobs.map((job) => ({
      id: job.id,
      stage: job.stage,
      name: job.name,
      status: job.status,
      created_at: hookTime(pipeline.createdAt),
      started_at: hookTime(pipeline.createdAt),
      finished_at: hookTime(pipeline.createdAt),
      duration: 12.5,
      queued_duration: 0.5,
      failure_reason: job.failureReason ?? (job.status === 'failed' ? 'script_failure' : null),
      when: 'on_success',
      manual: false,
      allow_failure: job.allowFailure,
      user: hookUser(pipeline.user),
      runner: null,
      artifacts_file: { filename: null, size: null },
      environment: null,
    })),
  };
}

export type MergeRequestAction = 'open' | 'reopen' | 'update' | 'close' | 'merge' | 'approved' | 'unapproved';

export function mergeRequestHook(
  base: string,
  mergeRequest: FakeMergeRequest,
  options: {
    action: MergeRequestAction;
    user?: FakeUser;
    oldrev?: string;
    changes?: Readonly<Record<string, unknown>>;
  },
) {
  return {
    object_kind: 'merge_request',
    event_type: 'merge_request',
    user: hookUser(options.user ?? mergeRequest.author),
    project: hookProject(base, mergeRequest.project),
    repository: hookRepository(base, mergeRequest.project),
    object_attributes: {
      ...hookMergeRequest(base, mergeRequest),
      action: options.action,
      ...(options.oldrev === undefined ? {} : { oldrev: options.oldrev }),
    },
    labels: mergeRequest.labels.map((label, index) => ({
      id: index + 1,
      title: label,
      color: '#428BCA',
      type: 'ProjectLabel',
    })),
    changes: options.changes ?? {},
    assignees: mergeRequest.assignees.map(hookUser),
    reviewers: mergeRequest.reviewers.map(hookUser),
  };
}

export function noteHook(
  base: string,
  mergeRequest: FakeMergeRequest,
  { discussion, note }: { discussion: FakeDiscussion; note: FakeNote },
  action: 'create' | 'update' = 'create',
) {
  return {
    object_kind: 'note',
    event_type: note.internal ? 'confidential_note' : 'note',
    user: hookUser(note.author),
    project_id: mergeRequest.project.id,
    project: hookProject(base, mergeRequest.project),
    object_attributes: {
      id: note.id,
      internal: note.internal,
      note: note.body,
      description: note.body,
      noteable_type: 'MergeRequest',
      noteable_id: mergeRequest.id,
      author_id: note.author.id,
      created_at: hookTime(note.createdAt),
      updated_at: hookTime(note.updatedAt),
      project_id: mergeRequest.project.id,
      attachment: null,
      line_code: null,
      commit_id: '',
      system: note.system,
      st_diff: null,
      type: discussion.individualNote ? null : 'DiscussionNote',
      discussion_id: discussion.id,
      resolved_at: null,
      change_position: null,
      original_position: null,
      position: null,
      url: `${mergeRequestUrl(base, mergeRequest)}#note_${note.id}`,
      action,
    },
    repository: hookRepository(base, mergeRequest.project),
    merge_request: hookMergeRequest(base, mergeRequest),
  };
}

function hookMergeRequest(base: string, mergeRequest: FakeMergeRequest) {
  const { project } = mergeRequest;
  return {
    id: mergeRequest.id,
    iid: mergeRequest.iid,
    title: title(mergeRequest),
    description: mergeRequest.description,
    state: mergeRequest.state,
    draft: mergeRequest.draft,
    work_in_progress: mergeRequest.draft,
    source_branch: mergeRequest.sourceBranch,
    target_branch: mergeRequest.targetBranch,
    source_project_id: project.id,
    target_project_id: project.id,
    author_id: mergeRequest.author.id,
    assignee_ids: mergeRequest.assignees.map(({ id }) => id),
    reviewer_ids: mergeRequest.reviewers.map(({ id }) => id),
    created_at: hookTime(mergeRequest.createdAt),
    updated_at: hookTime(mergeRequest.updatedAt),
    merge_status: 'can_be_merged',
    detailed_merge_status: 'mergeable',
    head_pipeline_id:
      project.pipelines.filter((pipeline) => pipeline.mergeRequest === mergeRequest).at(-1)?.id ?? null,
    last_commit: hookCommit(base, project, mergeRequest.sha, mergeRequest.author),
    url: mergeRequestUrl(base, mergeRequest),
    source: hookProject(base, project),
    target: hookProject(base, project),
  };
}

const title = (mergeRequest: FakeMergeRequest) =>
  mergeRequest.draft ? `Draft: ${mergeRequest.title}` : mergeRequest.title;

/** Webhooks write times in another form than the API. */
const hookTime = (iso: string) => `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;

const hookUser = (user: FakeUser) => ({
  id: user.id,
  name: user.name,
  username: user.username,
  avatar_url: null,
  email: '[REDACTED]',
});

function hookProject(base: string, project: FakeProject) {
  const name = project.path.split('/').at(-1);
  return {
    id: project.id,
    name,
    description: null,
    web_url: `${base}/${project.path}`,
    avatar_url: null,
    git_ssh_url: `git@gitlab.example.org:${project.path}.git`,
    git_http_url: `${base}/${project.path}.git`,
    namespace: project.path.split('/').slice(0, -1).join('/'),
    visibility_level: { private: 0, internal: 10, public: 20 }[project.visibility],
    path_with_namespace: project.path,
    default_branch: project.defaultBranch,
    ci_config_path: '',
  };
}

const hookRepository = (base: string, project: FakeProject) => ({
  name: project.path.split('/').at(-1),
  url: `git@gitlab.example.org:${project.path}.git`,
  description: null,
  homepage: `${base}/${project.path}`,
});

const hookCommit = (base: string, project: FakeProject, sha: string, author: FakeUser) => ({
  id: sha,
  message: 'Change\n',
  title: 'Change',
  timestamp: '2026-01-01T00:00:00+00:00',
  url: `${base}/${project.path}/-/commit/${sha}`,
  author: { name: author.name, email: '[REDACTED]' },
});

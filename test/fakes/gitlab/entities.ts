import type {
  FakeCommit,
  FakeDiff,
  FakeDiscussion,
  FakeJob,
  FakeMergeRequest,
  FakeNote,
  FakePipeline,
  FakePosition,
  FakeProject,
  FakeStatus,
  FakeUser,
} from './state.ts';

/** JSON shapes of GitLab's REST answers. `base` is the stand-in's own URL. */

export const userBasic = (base: string, user: FakeUser) => ({
  id: user.id,
  username: user.username,
  public_email: null,
  name: user.name,
  state: 'active',
  locked: false,
  avatar_url: null,
  web_url: `${base}/${user.username}`,
});

export const projectEntity = (base: string, project: FakeProject) => {
  const [name = project.path] = project.path.split('/').slice(-1);
  const group = project.path.slice(0, -name.length - 1);
  return {
    id: project.id,
    description: null,
    name,
    name_with_namespace: project.path.split('/').join(' / '),
    path: name,
    path_with_namespace: project.path,
    created_at: '2026-01-01T00:00:00.000Z',
    default_branch: project.defaultBranch,
    tag_list: [],
    topics: [],
    http_url_to_repo: `${base}/${project.path}.git`,
    web_url: `${base}/${project.path}`,
    visibility: project.visibility,
    namespace: { id: 1, name: group, path: group, kind: 'group', full_path: group, parent_id: null },
    archived: false,
  };
};

export const mergeRequestUrl = (base: string, mergeRequest: FakeMergeRequest) =>
  `${base}/${mergeRequest.project.path}/-/merge_requests/${mergeRequest.iid}`;

export const mergeRequestEntity = (base: string, mergeRequest: FakeMergeRequest) => {
  const { project } = mergeRequest;
  const head = project.pipelines.filter((pipeline) => pipeline.mergeRequest === mergeRequest).at(-1);
  return {
    id: mergeRequest.id,
    iid: mergeRequest.iid,
    project_id: project.id,
    title: mergeRequest.draft ? `Draft: ${mergeRequest.title}` : mergeRequest.title,
    description: mergeRequest.description,
    state: mergeRequest.state,
    created_at: mergeRequest.createdAt,
    updated_at: mergeRequest.updatedAt,
    merged_by: null,
    merged_at: null,
    closed_by: null,
    closed_at: null,
    target_branch: mergeRequest.targetBranch,
    source_branch: mergeRequest.sourceBranch,
    user_notes_count: mergeRequest.discussions.flatMap(({ notes }) => notes).filter(({ system }) => !system)
      .length,
    upvotes: 0,
    downvotes: 0,
    author: userBasic(base, mergeRequest.author),
    assignees: mergeRequest.assignees.map((user) => userBasic(base, user)),
    assignee: mergeRequest.assignees[0] ? userBasic(base, mergeRequest.assignees[0]) : null,
    reviewers: mergeRequest.reviewers.map((user) => userBasic(base, user)),
    source_project_id: mergeRequest.sourceProject?.id ?? null,
    target_project_id: project.id,
    labels: mergeRequest.labels,
    draft: mergeRequest.draft,
    work_in_progress: mergeRequest.draft,
    milestone: null,
    merge_when_pipeline_succeeds: false,
    merge_status: 'can_be_merged',
    detailed_merge_status: 'mergeable',
    sha: mergeRequest.sha,
    merge_commit_sha: null,
    squash_commit_sha: null,
    discussion_locked: null,
    reference: `!${mergeRequest.iid}`,
    references: {
      short: `!${mergeRequest.iid}`,
      relative: `!${mergeRequest.iid}`,
      full: `${project.path}!${mergeRequest.iid}`,
    },
    web_url: mergeRequestUrl(base, mergeRequest),
    squash: false,
    has_conflicts: false,
    blocking_discussions_resolved: true,
    subscribed: false,
    changes_count:
      mergeRequest.diffs.length === 0
        ? null
        : `${mergeRequest.diffs.length}${mergeRequest.overflow ? '+' : ''}`,
    head_pipeline: head ? pipelineEntity(base, head) : null,
    diff_refs: {
      base_sha: mergeRequest.baseSha,
      head_sha: mergeRequest.sha,
      start_sha: mergeRequest.baseSha,
    },
    user: { can_merge: false },
  };
};

/** One push of one commit, as the events of a project show it. */
export const pushEntity = (
  base: string,
  { project, sourceBranch, commits }: FakeMergeRequest,
  commit: FakeCommit,
  index: number,
) => ({
  id: index + 1,
  project_id: project.id,
  action_name: index === 0 ? 'pushed new' : 'pushed to',
  target_id: null,
  target_iid: null,
  target_type: null,
  author_id: commit.author.id,
  target_title: null,
  created_at: commit.createdAt,
  author: userBasic(base, commit.author),
  author_username: commit.author.username,
  imported: false,
  imported_from: 'none',
  push_data: {
    commit_count: 1,
    action: index === 0 ? 'created' : 'pushed',
    ref_type: 'branch',
    commit_from: commits[index - 1]?.sha ?? null,
    commit_to: commit.sha,
    ref: sourceBranch,
    commit_title: commit.title,
    ref_count: null,
  },
});

export const diffEntity = (diff: FakeDiff) => ({
  diff: diff.tooLarge || diff.collapsed ? '' : diff.diff,
  collapsed: diff.collapsed,
  too_large: diff.tooLarge,
  new_path: diff.newPath,
  old_path: diff.oldPath,
  a_mode: diff.newFile ? '0' : '100644',
  b_mode: diff.deletedFile ? '0' : '100644',
  new_file: diff.newFile,
  renamed_file: diff.renamedFile,
  deleted_file: diff.deletedFile,
  generated_file: diff.generated,
});

export const pipelineEntity = (base: string, pipeline: FakePipeline) => ({
  id: pipeline.id,
  iid: pipeline.iid,
  project_id: pipeline.project.id,
  sha: pipeline.sha,
  ref: pipeline.ref,
  status: pipeline.status,
  source: pipeline.source,
  created_at: pipeline.createdAt,
  updated_at: pipeline.createdAt,
  web_url: `${base}/${pipeline.project.path}/-/pipelines/${pipeline.id}`,
});

export const jobEntity = (base: string, job: FakeJob) => ({
  id: job.id,
  status: job.status,
  stage: job.stage,
  name: job.name,
  ref: job.pipeline.ref,
  tag: false,
  coverage: null,
  allow_failure: job.allowFailure,
  created_at: job.pipeline.createdAt,
  started_at: job.pipeline.createdAt,
  finished_at: job.pipeline.createdAt,
  erased_at: null,
  duration: 12.5,
  queued_duration: 0.5,
  ...(job.failureReason === undefined ? {} : { failure_reason: job.failureReason }),
  user: userBasic(base, job.pipeline.user),
  commit: { id: job.pipeline.sha, short_id: job.pipeline.sha.slice(0, 8), title: 'Change' },
  pipeline: pipelineEntity(base, job.pipeline),
  web_url: `${base}/${job.pipeline.project.path}/-/jobs/${job.id}`,
  project: { ci_job_token_scope_enabled: false },
  artifacts: [
    {
      file_type: 'trace',
      size: typeof job.trace === 'function' ? 0 : (job.trace?.length ?? 0),
      filename: 'job.log',
      file_format: null,
    },
  ],
  runner: null,
});

export const statusEntity = (base: string, status: FakeStatus) => ({
  id: status.id,
  sha: status.sha,
  ref: status.ref,
  status: status.status,
  name: status.name,
  target_url: status.targetUrl,
  description: status.description,
  created_at: '2026-01-01T00:00:00.000Z',
  started_at: '2026-01-01T00:00:01.000Z',
  finished_at: '2026-01-01T00:01:00.000Z',
  allow_failure: status.allowFailure,
  coverage: null,
  pipeline_id: status.pipelineId,
  author: userBasic(base, status.author),
});

/** A native job as the commit status list shows it. */
export const jobAsStatus = (base: string, job: FakeJob) =>
  statusEntity(base, {
    id: job.id,
    sha: job.pipeline.sha,
    ref: job.pipeline.ref,
    status: job.status,
    name: job.name,
    targetUrl: `${base}/${job.pipeline.project.path}/-/jobs/${job.id}`,
    description: null,
    allowFailure: job.allowFailure,
    pipelineId: job.pipeline.id,
    author: job.pipeline.user,
  });

export const noteEntity = (
  base: string,
  mergeRequest: FakeMergeRequest,
  discussion: FakeDiscussion,
  note: FakeNote,
  commandsChanges: Record<string, unknown> = {},
) => {
  const resolvable = !discussion.individualNote && !note.system;
  return {
    id: note.id,
    type: discussion.individualNote ? null : note.position === undefined ? 'DiscussionNote' : 'DiffNote',
    body: note.body,
    author: userBasic(base, note.author),
    created_at: note.createdAt,
    updated_at: note.updatedAt,
    system: note.system,
    noteable_id: mergeRequest.id,
    noteable_type: 'MergeRequest',
    project_id: mergeRequest.project.id,
    ...(note.position === undefined ? {} : { position: positionEntity(mergeRequest, note.position) }),
    resolvable,
    ...(resolvable
      ? {
          resolved: note.resolved,
          resolved_by: note.resolvedBy ? userBasic(base, note.resolvedBy) : null,
          resolved_at: note.resolvedBy ? note.updatedAt : null,
        }
      : {}),
    confidential: note.internal,
    internal: note.internal,
    imported: false,
    imported_from: 'none',
    noteable_iid: mergeRequest.iid,
    commands_changes: commandsChanges,
  };
};

const positionEntity = (mergeRequest: FakeMergeRequest, { newPath, newLine }: FakePosition) => ({
  base_sha: mergeRequest.baseSha,
  start_sha: mergeRequest.baseSha,
  head_sha: mergeRequest.sha,
  old_path: newPath,
  new_path: newPath,
  position_type: 'text',
  old_line: null,
  new_line: newLine,
  line_range: null,
});

export const discussionEntity = (
  base: string,
  mergeRequest: FakeMergeRequest,
  discussion: FakeDiscussion,
  notes: readonly FakeNote[] = discussion.notes,
) => ({
  id: discussion.id,
  individual_note: discussion.individualNote,
  notes: notes.map((note) => noteEntity(base, mergeRequest, discussion, note)),
});

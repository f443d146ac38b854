/** A GitLab pipeline webhook of merge request `iid`; what is not named is a failed merge request pipeline. */
export function aPipelineEvent(
  options: {
    readonly project?: string;
    readonly pipelineId?: number;
    readonly iid?: number;
    readonly status?: string;
    readonly source?: string;
    readonly sha?: string;
    readonly title?: string;
    /** False: `merge_request` is null. */
    readonly mergeRequest?: boolean;
    /** Bytes of a field that nobody reads. */
    readonly padding?: number;
  } = {},
): unknown {
  const {
    project = 'group/app',
    pipelineId = 31,
    iid = 7,
    status = 'failed',
    sha = 'a'.repeat(40),
  } = options;
  return {
    object_kind: 'pipeline',
    object_attributes: {
      id: pipelineId,
      iid: 3,
      ref: 'fix',
      sha,
      source: options.source ?? 'merge_request_event',
      status,
      url: `https://gitlab.example.org/${project}/-/pipelines/${pipelineId}`,
    },
    merge_request:
      options.mergeRequest === false
        ? null
        : {
            id: 1,
            iid,
            title: options.title ?? 'Fix it',
            source_branch: 'fix',
            target_branch: 'main',
            source_project_id: 1,
            target_project_id: 1,
            state: 'opened',
          },
    user: { id: 9, name: 'Alice', username: 'alice' },
    project: { id: 1, name: 'App', path_with_namespace: project },
    builds: options.padding === undefined ? [] : [{ id: 1, name: 'x'.repeat(options.padding) }],
  };
}

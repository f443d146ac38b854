import { z } from 'zod';
import type { Tool } from '../../agent/tools/port.ts';
import { type GitLabApi, projectPath } from '../../http/gitlab.ts';
import type { SourceScope } from '../port.ts';
import { gitlabTool } from './gitlab-tool.ts';
import { jsonLines } from './json-lines.ts';
import { fullSha, outOfScope, project, sha } from './scope.ts';

export function commitStatuses(api: GitLabApi, scope: SourceScope): Tool {
  return gitlabTool({
    name: 'gitlab_get_commit_statuses',
    description:
      'All CI statuses of the commit as JSON lines, one status a line: native GitLab jobs and external systems.',
    notes: NOTES,
    schema: z.object({ project, sha }),
    async run(args, { signal }) {
      const refusal = outOfScope(scope, args);
      if (refusal !== undefined) return { kind: 'Error', message: refusal };
      const path = `projects/${projectPath(args.project)}/repository/commits/${fullSha(scope, args)}/statuses`;
      return jsonLines(api.pages(path, {}, signal), {
        what: 'statuses',
        none: 'GitLab knows no status of this commit.',
      });
    },
  });
}

const NOTES = `Each line of \`gitlab_get_commit_statuses\` has \`name\`, \`status\`, \`target_url\`, \`allow_failure\` and \`description\`.
A status whose \`target_url\` contains \`/-/jobs/<id>\` is a job of GitLab: \`gitlab_get_job_log\` reads its log by that id. Others belong to external systems.
A failed status with \`allow_failure: true\` did not fail the pipeline. Failures: \`jq -c 'select(.status=="failed")' FILE\`.`;

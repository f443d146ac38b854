import { z } from 'zod';
import type { Tool, ToolOutput } from '../../agent/tools/port.ts';
import { HttpError } from '../../http/client.ts';
import { type GitLabApi, projectPath } from '../../http/gitlab.ts';
import type { SourceScope } from '../port.ts';
import { gitlabTool } from './gitlab-tool.ts';
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
      return streamed(api.pages(path, {}, signal));
    },
  });
}

const NOTES = `Each line of \`gitlab_get_commit_statuses\` has \`name\`, \`status\`, \`target_url\`, \`allow_failure\` and \`description\`.
A status whose \`target_url\` contains \`/-/jobs/<id>\` is a job of GitLab: \`gitlab_get_job_log\` reads its log by that id. Others belong to external systems.
A failed status with \`allow_failure: true\` did not fail the pipeline. Failures: \`jq -c 'select(.status=="failed")' FILE\`.`;

/**
 * The first page is awaited, so that a refusal is an error and not an empty file; the rest flows. A list that
 * breaks off later keeps what has come.
 */
async function streamed(pages: AsyncIterable<readonly unknown[]>): Promise<ToolOutput> {
  const iterator = pages[Symbol.asyncIterator]();
  const first = await iterator.next();
  let count = 0;
  let missing: string | undefined;
  const lines = (rows: readonly unknown[]) => {
    count += rows.length;
    return Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  };
  async function* chunks(): AsyncGenerator<Uint8Array> {
    try {
      for (let page = first; !page.done; page = await iterator.next()) yield lines(page.value);
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      missing = `The list broke off after ${count} statuses (${error.message}); those after them are missing.`;
    } finally {
      await iterator.return?.();
    }
  }
  return { kind: 'Stream', chunks: chunks(), suffix: '.jsonl', binary: false, incomplete: () => missing };
}

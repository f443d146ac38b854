import { z } from 'zod';
import type { Tool } from '../../agent/tools/port.ts';
import { type GitLabApi, projectPath } from '../../http/gitlab.ts';
import type { SourceScope } from '../port.ts';
import { textStream } from '../text-stream.ts';
import { gitlabTool } from './gitlab-tool.ts';
import { plainLog } from './plain-log.ts';
import { rawBody } from './raw.ts';
import { isAllowedProject, outOfScope, project, refusalOf } from './scope.ts';

export function jobLog(api: GitLabApi, scope: SourceScope): Tool {
  return gitlabTool({
    name: 'gitlab_get_job_log',
    description:
      'The log of one GitLab CI job of the project, as plain text without colours and section markers.',
    schema: z.object({
      project,
      job_id: z
        .number()
        .int()
        .positive()
        .describe('Id of the job: the number after /-/jobs/ in a status target_url'),
    }),
    async run(args, { signal }) {
      const refusal = outOfScope(scope, args) ?? (await foreignJob(api, scope, args, signal));
      if (refusal !== undefined) return { kind: 'Error', message: refusal };
      // The path names the project, so GitLab answers 404 for a job of another one.
      const path = `projects/${projectPath(args.project)}/jobs/${args.job_id}/trace`;
      const log = plainLog(await rawBody(api, path, {}, signal));
      return textStream(log, { suffix: '.log', what: 'log', whenEmpty: EMPTY });
    },
  });
}

const EMPTY = 'The log is empty: the job has not started, wrote nothing, or its log was erased.';

const Job = z.object({
  ref: z.string().nullish(),
  commit: z.object({ id: z.string() }).nullish(),
  pipeline: z.object({ ref: z.string().nullish(), sha: z.string().nullish() }).nullish(),
});

/** A refusal for a job that ran neither on the run's commit nor in a pipeline of its merge request. */
async function foreignJob(
  api: GitLabApi,
  scope: SourceScope,
  asked: { readonly project: string; readonly job_id: number },
  signal: AbortSignal,
): Promise<string | undefined> {
  if (isAllowedProject(scope, asked.project)) return undefined;
  const job = Job.parse(await api.resources(signal).jobs.show(asked.project, asked.job_id));
  const commits = [job.commit?.id, job.pipeline?.sha];
  // Pipelines of merged results run on a commit that only GitLab knows: there the ref names the merge request.
  const ownRef = new RegExp(`^refs/merge-requests/${scope.iid}/(head|merge|train)$`);
  const refs = [job.ref, job.pipeline?.ref];
  if (commits.includes(scope.sha) || refs.some((ref) => ownRef.test(ref ?? ''))) return undefined;
  return refusalOf(scope, [`job ${asked.job_id}, which ran on ${job.ref ?? 'another ref'}`]);
}

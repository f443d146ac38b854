import { z } from 'zod';
import type { Tool } from '../../agent/tools/port.ts';
import type { GitLabApi } from '../../http/gitlab.ts';
import type { SourceScope } from '../port.ts';
import { gitlabTool } from './gitlab-tool.ts';
import { iid, isOwnMergeRequest, outOfScope, project } from './scope.ts';

/** GitLab allows a million characters; the rest of the answer is small. */
const MAX_DESCRIPTION = 8_000;

const Pipeline = z.object({ id: z.number(), status: z.string(), web_url: z.string() });
const MergeRequest = z.object({
  title: z.string(),
  state: z.string(),
  draft: z.boolean().default(false),
  description: z.string().nullable(),
  author: z.object({ username: z.string(), name: z.string() }),
  sha: z.string().nullable(),
  source_branch: z.string(),
  target_branch: z.string(),
  labels: z.array(z.string()),
  web_url: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
  changes_count: z.string().nullish(),
  diff_refs: z
    .object({ base_sha: z.string().nullable(), head_sha: z.string().nullable() })
    .partial()
    .nullish(),
  head_pipeline: Pipeline.nullish(),
});

export function mrDetails(api: GitLabApi, scope: SourceScope): Tool {
  return gitlabTool({
    name: 'gitlab_get_mr_details',
    description: 'Title, author, description, branches, head commit, labels and URLs of the merge request.',
    schema: z.object({ project, iid }),
    async run(args, { signal }) {
      const refusal = outOfScope(scope, args);
      if (refusal !== undefined) return { kind: 'Error', message: refusal };
      const found = MergeRequest.parse(
        await api.resources(signal).mergeRequests.show(args.project, args.iid),
      );
      return {
        kind: 'Json',
        value: {
          ...found,
          ...cut(found.description ?? ''),
          note: isOwnMergeRequest(scope, args) ? movedOn(scope, found.sha) : undefined,
        },
      };
    },
  });
}

function cut(description: string) {
  if (description.length <= MAX_DESCRIPTION) return { description };
  return {
    description: description.slice(0, MAX_DESCRIPTION),
    description_truncated_from: description.length,
  };
}

/** The head may have moved since the event; the run stays with its commit. */
function movedOn(scope: SourceScope, sha: string | null): string | undefined {
  if (sha === null || sha === scope.sha) return undefined;
  return `The merge request has moved on to ${sha}. This run is about ${scope.sha}.`;
}

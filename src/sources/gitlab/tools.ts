import type { Tool } from '../../agent/tools/port.ts';
import type { HttpClient } from '../../http/client.ts';
import { createGitLabApi } from '../../http/gitlab.ts';
import type { ToolToken } from '../../settings/tokens.ts';
import type { SourceScope } from '../port.ts';
import { commitStatuses } from './commit-statuses.ts';
import { fileAtRef } from './file-at-ref.ts';
import { jobLog } from './job-log.ts';
import { mrDetails } from './mr-details.ts';
import { mrDiff } from './mr-diff.ts';
import { mrDiscussions } from './mr-discussions.ts';
import { repoArchive } from './repo-archive.ts';

export interface GitLabSource {
  readonly http: HttpClient;
  readonly baseUrl: string;
  readonly token: ToolToken;
  /** Word that opens the markers in agents' notes, where it is not the usual one. */
  readonly markerPrefix?: string;
}

/** The model's tools on GitLab, which read what the run is about and nothing else. */
export function gitlabTools(source: GitLabSource, scope: SourceScope): readonly Tool[] {
  const api = createGitLabApi(source);
  return [
    mrDetails(api, scope),
    commitStatuses(api, scope),
    jobLog(api, scope),
    mrDiff(api, scope),
    fileAtRef(api, scope),
    repoArchive(api, scope),
    mrDiscussions(api, scope, source),
  ];
}

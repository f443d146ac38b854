import { z } from 'zod';
import type { HttpClient } from '../http/client.ts';
import { createGitLabApi, type GitLabApi } from '../http/gitlab.ts';
import { outcome } from './outcome.ts';
import type {
  MergeRequestFacts,
  MergeRequestRef,
  MergeRequests,
  MergeRequestsFactory,
  NoteOutcome,
} from './port.ts';

/** What the operator itself asks about merge requests and members. */
export function createMergeRequestsFactory(options: {
  readonly http: HttpClient;
  readonly baseUrl: string;
}): MergeRequestsFactory {
  return { mergeRequestsWith: (token) => new GitLabMergeRequests(createGitLabApi({ ...options, token })) };
}

const MergeRequest = z.object({
  project_id: z.number().int(),
  iid: z.number().int(),
  title: z.string(),
  state: z.string(),
  draft: z.boolean().optional(),
  work_in_progress: z.boolean().optional(),
  sha: z.string().nullable(),
  source_branch: z.string(),
  target_branch: z.string(),
  web_url: z.string(),
  author: z.object({ id: z.number().int() }),
});
const Member = z.object({ access_level: z.number().int(), state: z.string().optional() });

class GitLabMergeRequests implements MergeRequests {
  readonly #api: GitLabApi;

  constructor(api: GitLabApi) {
    this.#api = api;
  }

  async get(
    { project, iid }: MergeRequestRef,
    signal?: AbortSignal,
  ): Promise<NoteOutcome<MergeRequestFacts>> {
    const asked = await outcome(this.#api.resources(signal).mergeRequests.show(project, iid));
    if (asked.kind !== 'Ok') return asked;
    const facts = MergeRequest.parse(asked.value);
    if (facts.sha === null) {
      // GitLab knows no head while a new merge request is being prepared, and when its branch is gone.
      return { kind: 'Refused', status: 404, message: `${project}!${iid} has no head commit` };
    }
    return {
      kind: 'Ok',
      value: {
        projectId: facts.project_id,
        iid: facts.iid,
        title: facts.title,
        state: facts.state,
        draft: facts.draft ?? facts.work_in_progress ?? false,
        sha: facts.sha,
        sourceBranch: facts.source_branch,
        targetBranch: facts.target_branch,
        webUrl: facts.web_url,
        authorId: facts.author.id,
      },
    };
  }

  /** A user who is no member is 404 of the member; that of a project that is not seen is told apart by asking for it. */
  async accessLevel(project: string, userId: number, signal?: AbortSignal): Promise<NoteOutcome<number>> {
    const { members, projects } = this.#api.resources(signal);
    const asked = await outcome(members.show(project, userId, { includeInherited: true }));
    if (asked.kind === 'Ok') {
      const member = Member.parse(asked.value);
      return { kind: 'Ok', value: member.state === 'blocked' ? 0 : member.access_level };
    }
    if (asked.status !== 404) return asked;
    const seen = await outcome(projects.show(project));
    return seen.kind === 'Ok' ? { kind: 'Ok', value: 0 } : seen;
  }
}

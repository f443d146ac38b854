import { z } from 'zod';
import type { HttpClient } from '../http/client.ts';
import { createGitLabApi, type GitLabApi } from '../http/gitlab.ts';
import { outcome } from './outcome.ts';
import type {
  GitLabUser,
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
  source_project_id: z.number().int().nullish(),
  head_pipeline: z.object({ id: z.number().int() }).nullish(),
});
const PushEvent = z.object({
  author_id: z.number().int(),
  author_username: z.string().nullish(),
  push_data: z.object({ ref: z.string().nullish(), ref_type: z.string().nullish() }).nullish(),
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
        headPipelineId: facts.head_pipeline?.id,
        sourceProjectId: facts.source_project_id ?? undefined,
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
  pushAuthor(
    { sourceProjectId, sourceBranch }: Pick<MergeRequestFacts, 'sourceProjectId' | 'sourceBranch'>,
    signal?: AbortSignal,
  ): Promise<NoteOutcome<GitLabUser | undefined>> {
    return sourceProjectId === undefined
      ? Promise.resolve({ kind: 'Ok', value: undefined })
      : outcome(this.#newestPush(sourceProjectId, sourceBranch, signal));
  }

  async #newestPush(
    project: number,
    branch: string,
    signal: AbortSignal | undefined,
  ): Promise<GitLabUser | undefined> {
    let pages = 0;
    const query = { action: 'pushed', sort: 'desc' };
    for await (const rows of this.#api.pages(`projects/${project}/events`, query, signal)) {
      for (const row of rows) {
        const { push_data: push, author_id: id, author_username: name } = PushEvent.parse(row);
        if (push?.ref === branch && push.ref_type !== 'tag') return { id, name: name ?? String(id) };
      }
      pages += 1;
      if (pages >= PUSH_PAGES) return undefined;
    }
    return undefined;
  }
}

/** 500 pushes back: what looks at a merge request mostly follows a push to it. */
const PUSH_PAGES = 5;

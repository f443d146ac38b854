import { z } from 'zod';
import {
  type Bump,
  type BumpReader,
  type BumpReading,
  type RepositoryTree,
  TreeUnavailableError,
} from '../../delivery/port.ts';
import { type HttpClient, HttpError } from '../../http/client.ts';
import { type HttpClock, systemHttpClock } from '../../http/clock.ts';
import { createGitLabApi, type GitLabApi, projectPath } from '../../http/gitlab.ts';
import { backoffMs, DEFAULT_RETRY } from '../../http/retry.ts';
import type { ToolToken } from '../../settings/tokens.ts';
import { rawBody } from '../gitlab/raw.ts';
import { archiveTree } from './archive-tree.ts';

export interface BumpReaderOptions {
  readonly http: HttpClient;
  readonly baseUrl: string;
  readonly token: ToolToken;
  /** Of the pauses between tries of an archive. */
  readonly clock?: HttpClock;
}

/** Merge requests and trees of repositories on GitLab, with the read token. */
export const createBumpReader = (options: BumpReaderOptions): BumpReader => new GitLabBumpReader(options);

const MergeRequest = z.object({
  title: z.string(),
  sha: z.string().nullish(),
  source_branch: z.string(),
  target_branch: z.string(),
  source_project_id: z.number().nullish(),
  target_project_id: z.number(),
  labels: z.array(z.string()),
});
const Commit = z.object({ id: z.string() });

class GitLabBumpReader implements BumpReader {
  readonly #api: GitLabApi;
  readonly #clock: HttpClock;
  /** Read before: the next one mostly has the same files, which are then held once. */
  #last: WeakRef<RepositoryTree> | undefined;

  constructor({ http, baseUrl, token, clock = systemHttpClock }: BumpReaderOptions) {
    this.#api = createGitLabApi({ http, baseUrl, token });
    this.#clock = clock;
  }

  async bump(
    { project, iid }: Parameters<BumpReader['bump']>[0],
    signal?: AbortSignal,
  ): Promise<BumpReading> {
    try {
      const path = `projects/${projectPath(project)}/merge_requests/${iid}`;
      const facts = MergeRequest.parse(await this.#api.json({ path, ...(signal && { signal }) }));
      const { sha: headSha, source_branch: sourceBranch, target_branch: targetBranch } = facts;
      if (headSha === undefined || headSha === null || headSha === '')
        return { kind: 'Refused', message: `${project}!${iid} has no head commit` };
      const baseSha = await this.#mergeBase(project, headSha, targetBranch, signal);
      if (baseSha === undefined)
        return {
          kind: 'Refused',
          message: `${project}!${iid} shares no commit with ${targetBranch}, or that branch is gone`,
        };
      const bump: Bump = {
        project,
        iid,
        title: facts.title,
        headSha,
        baseSha,
        sourceBranch,
        targetBranch,
        labels: facts.labels,
        // A project that is gone leaves null.
        fork: facts.source_project_id !== facts.target_project_id,
      };
      return { kind: 'Bump', bump };
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return { kind: 'Refused', message: error.message };
    }
  }

  /** Asked, since what the merge request names as its base is that of its last push. Undefined: there is none. */
  async #mergeBase(
    project: string,
    head: string,
    target: string,
    signal: AbortSignal | undefined,
  ): Promise<string | undefined> {
    const path = `projects/${projectPath(project)}/repository/merge_base`;
    try {
      const query = { refs: [head, target] };
      return Commit.parse(await this.#api.json({ path, query, ...(signal && { signal }) })).id;
    } catch (error) {
      // 400: the branch is gone. 404: nothing is shared.
      if (error instanceof HttpError && (error.status === 400 || error.status === 404)) return undefined;
      throw error;
    }
  }

  async tree(project: string, sha: string, signal?: AbortSignal): Promise<RepositoryTree> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const tree = await this.#archive(project, sha, signal);
        this.#last = new WeakRef(tree);
        return tree;
      } catch (error) {
        if (isRefusal(error))
          throw new TreeUnavailableError(
            `The archive of ${sha.slice(0, 12)} is not given: ${error.message}.`,
          );
        // One that breaks off midway begins anew; a request that never began was repeated below.
        const again = error instanceof HttpError && error.retryable && error.status === undefined;
        if (!again || attempt >= DEFAULT_RETRY.attempts) throw error;
        await this.#clock.sleep(backoffMs(DEFAULT_RETRY, attempt, this.#clock.random()), signal);
      }
    }
  }

  async #archive(project: string, sha: string, signal: AbortSignal | undefined): Promise<RepositoryTree> {
    const path = `projects/${projectPath(project)}/repository/archive.tar.gz`;
    // Files of Git LFS as the repository has them: pointers. What they point to is nothing that charts read.
    const packed = await rawBody(this.#api, path, { sha, include_lfs_blobs: false }, signal);
    return archiveTree(packed, sha, { like: this.#last?.deref() });
  }
}

const isRefusal = (error: unknown): error is HttpError =>
  error instanceof HttpError && [401, 403, 404].includes(error.status ?? 0);

import { z } from 'zod';
import type { BumpWriter, CommitOutcome } from '../delivery/port.ts';
import { HttpError } from '../http/client.ts';
import type { HttpClock } from '../http/clock.ts';
import { type GitLabApi, projectPath } from '../http/gitlab.ts';
import { backoffMs, DEFAULT_RETRY } from '../http/retry.ts';

export type NewCommit = Parameters<BumpWriter['commit']>[1];

export interface Branch {
  readonly api: GitLabApi;
  readonly clock: HttpClock;
  /** As a segment of a path. */
  readonly project: string;
  readonly branch: string;
}

/**
 * One commit on a branch, only while its head is the expected one. GitLab has no request that says so; what stands in
 * for it: the head is read right before, each file names the commit that changed it last, which GitLab compares under
 * its own lock, and the new commit's parent is looked at. A push of other files between the first and the second is
 * the one that gets through: it is kept whole below our commit, and the outcome names it.
 *
 * A request without an answer may have been carried out. Before it is tried again the head is read once more, and a
 * head that says our words on the expected parent is our commit.
 */
export async function commitOnto(
  branch: Branch,
  commit: NewCommit,
  signal?: AbortSignal,
): Promise<CommitOutcome> {
  const state: { lastCommits?: ReadonlyMap<string, string> } = {};
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await attempted(branch, commit, state, signal);
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      if (!error.retryable) return refused(branch, commit, error, signal);
      const { retryAfterMs = 0 } = error;
      if (attempt >= DEFAULT_RETRY.attempts || retryAfterMs > DEFAULT_RETRY.maxRetryAfterMs) throw error;
      const pause = backoffMs(DEFAULT_RETRY, attempt, branch.clock.random());
      await branch.clock.sleep(Math.max(retryAfterMs, pause), signal);
    }
  }
}

const Head = z.object({
  commit: z.object({ id: z.string(), message: z.string(), parent_ids: z.array(z.string()).nullish() }),
});
const Made = z.object({ id: z.string(), parent_ids: z.array(z.string()) });

async function attempted(
  branch: Branch,
  commit: NewCommit,
  state: { lastCommits?: ReadonlyMap<string, string> },
  signal: AbortSignal | undefined,
): Promise<CommitOutcome> {
  // Read at the expected head, so that only another push can make them differ.
  state.lastCommits ??= await lastCommitsOf(branch, commit, signal);
  const found = await elsewhere(branch, commit, signal);
  if (found !== undefined) return found;
  const made = await branch.api.json({
    method: 'POST',
    path: `projects/${branch.project}/repository/commits`,
    body: {
      branch: branch.branch,
      commit_message: commit.message,
      actions: commit.files.map(({ path, bytes }) => ({
        action: 'update',
        file_path: path,
        content: Buffer.from(bytes).toString('base64'),
        encoding: 'base64',
        last_commit_id: state.lastCommits?.get(path),
      })),
    },
    ...(signal && { signal }),
  });
  const { id, parent_ids: parents } = Made.parse(made);
  const [parent] = parents;
  return parents.length === 1 && parent === commit.expectedHead
    ? { kind: 'Committed', sha: id }
    : { kind: 'Committed', sha: id, onto: parent ?? 'no commit' };
}

/** The head where it is not the expected one: our own commit, or somebody's. */
async function elsewhere(
  { api, project, branch }: Branch,
  { expectedHead, message }: NewCommit,
  signal: AbortSignal | undefined,
): Promise<CommitOutcome | undefined> {
  const path = `projects/${project}/repository/branches/${encodeURIComponent(branch)}`;
  const { commit } = Head.parse(await api.json({ path, ...(signal && { signal }) }));
  if (commit.id === expectedHead) return undefined;
  const own = commit.message.trim() === message.trim() && commit.parent_ids?.[0] === expectedHead;
  if (own) return { kind: 'Committed', sha: commit.id };
  return {
    kind: 'Moved',
    message: `${branch} is at ${commit.id.slice(0, 12)}, and the repair was made for ${expectedHead.slice(0, 12)}`,
  };
}

/** GitLab refuses with 400 for a file that has changed and for much else: the head tells them apart. */
async function refused(
  branch: Branch,
  commit: NewCommit,
  error: HttpError,
  signal: AbortSignal | undefined,
): Promise<CommitOutcome> {
  const { status } = error;
  if (status === undefined || status >= 500) throw error;
  const moved = status === 404 ? undefined : await elsewhere(branch, commit, signal).catch(() => undefined);
  return moved ?? { kind: 'Refused', status, message: error.message };
}

/** By path: the commit that changed the file last, seen from the expected head. */
async function lastCommitsOf(
  { api, project }: Branch,
  { files, expectedHead }: NewCommit,
  signal: AbortSignal | undefined,
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const { path } of files) {
    const file = `projects/${project}/repository/files/${projectPath(path)}`;
    const headers = await api.head(file, { ref: expectedHead }, signal);
    const last = headers['x-gitlab-last-commit-id'];
    if (last === undefined || last === '') {
      const url = `${api.baseUrl}/api/v4/${file}`;
      const what = 'no X-Gitlab-Last-Commit-Id in the answer; let the proxy before GitLab pass it on';
      throw new HttpError(`HEAD ${url}: ${what}`, { method: 'HEAD', url, status: 502, retryable: false });
    }
    found.set(path, last);
  }
  return found;
}

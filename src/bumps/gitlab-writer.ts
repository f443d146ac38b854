import { z } from 'zod';
import type { Bump, BumpWriter, CommitOutcome } from '../delivery/port.ts';
import { type HttpClient, HttpError } from '../http/client.ts';
import { type HttpClock, systemHttpClock } from '../http/clock.ts';
import { createGitLabApi, type GitLabApi, projectPath } from '../http/gitlab.ts';
import type { ActionToken } from '../settings/tokens.ts';
import { commitOnto, type NewCommit } from './commit.ts';
import { hasTrailer } from './trailer.ts';

export interface BumpWriterOptions {
  readonly http: HttpClient;
  readonly baseUrl: string;
  /** The one project that the token is for. */
  readonly project: string;
  readonly token: ActionToken;
  /** Of the pauses between tries of a commit. */
  readonly clock?: HttpClock;
}

/** Commits, labels and statuses of bumps on GitLab. */
export const createBumpWriter = (options: BumpWriterOptions): BumpWriter => new GitLabBumpWriter(options);

/** Characters that GitLab keeps of a status' description. */
const DESCRIPTION = 255;

const Commit = z.object({ id: z.string(), message: z.string() });
const Labelled = z.object({ labels: z.array(z.string()) });
const Status = z.object({ id: z.number(), name: z.string(), status: z.string() });

class GitLabBumpWriter implements BumpWriter {
  readonly #api: GitLabApi;
  readonly #project: string;
  readonly #clock: HttpClock;

  constructor({ http, baseUrl, project, token, clock = systemHttpClock }: BumpWriterOptions) {
    this.#api = createGitLabApi({ http, baseUrl, token });
    this.#project = project;
    this.#clock = clock;
  }

  async ownCommit(bump: Bump, trailer: string, signal?: AbortSignal): Promise<string | undefined> {
    const path = `projects/${this.#at(bump)}/merge_requests/${bump.iid}/commits`;
    for await (const rows of this.#api.pages(path, {}, signal)) {
      const own = rows.map((row) => Commit.parse(row)).find(({ message }) => hasTrailer(message, trailer));
      if (own !== undefined) return own.id;
    }
    return undefined;
  }

  async addLabels(bump: Bump, labels: readonly string[], signal?: AbortSignal): Promise<void> {
    const path = `projects/${this.#at(bump)}/merge_requests/${bump.iid}`;
    const edited = await this.#api.json({
      method: 'PUT',
      path,
      body: { add_labels: labels.join(',') },
      idempotent: true,
      ...(signal && { signal }),
    });
    const there = Labelled.parse(edited).labels.map((label) => label.toLowerCase());
    const missing = labels.filter((label) => !there.includes(label.toLowerCase()));
    if (missing.length === 0) return;
    // A caller who may not set labels gets 200 and no label; tries are counted by them.
    const url = `${this.#api.baseUrl}/api/v4/${path}`;
    const what = `GitLab did not add the label ${missing.join(', ')}; give the bot the Developer role`;
    throw new HttpError(`PUT ${url}: ${what}`, { method: 'PUT', url, retryable: false });
  }

  async setStatus(
    bump: Bump,
    { state, name, description }: Parameters<BumpWriter['setStatus']>[1],
    signal?: AbortSignal,
  ): Promise<void> {
    try {
      await this.#api.json({
        method: 'POST',
        path: `projects/${this.#at(bump)}/statuses/${bump.headSha}`,
        body: {
          state,
          name,
          description: clipped(description),
          // Without it GitLab takes the first branch that has the commit.
          ...(!bump.fork && { ref: bump.sourceBranch }),
        },
        idempotent: true,
        ...(signal && { signal }),
      });
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      // The commit of a fork is on no branch of this project, and has no status here.
      if (bump.fork && error.status === 404) return;
      // GitLab has no transition from a state to itself.
      if (error.status === 400 && (await this.#hasState(bump, name, state, signal))) return;
      throw error;
    }
  }

  async #hasState(
    bump: Bump,
    name: string,
    state: string,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const path = `projects/${this.#at(bump)}/repository/commits/${bump.headSha}/statuses`;
    for await (const rows of this.#api.pages(path, { name }, signal)) {
      const found = rows.map((row) => Status.parse(row)).filter((status) => status.name === name);
      if (found.some(({ status }) => status === state)) return true;
    }
    return false;
  }

  async commit(bump: Bump, commit: NewCommit, signal?: AbortSignal): Promise<CommitOutcome> {
    const project = this.#at(bump);
    if (bump.fork)
      return {
        kind: 'Refused',
        status: 403,
        message: `${bump.project}!${bump.iid} comes from a fork, whose branch is never written`,
      };
    return commitOnto(
      { api: this.#api, clock: this.#clock, project, branch: bump.sourceBranch },
      commit,
      signal,
    );
  }

  /** The token is for one project; asking it for another one is a mistake of ours. */
  #at({ project }: Bump): string {
    if (project !== this.#project) throw new Error(`This writer is for ${this.#project}, not for ${project}`);
    return projectPath(project);
  }
}

function clipped(text: string): string {
  const characters = [...text];
  return characters.length <= DESCRIPTION ? text : `${characters.slice(0, DESCRIPTION - 1).join('')}…`;
}

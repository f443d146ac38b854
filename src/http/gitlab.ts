import {
  Jobs,
  MergeRequestDiscussions,
  MergeRequestNotes,
  MergeRequests,
  ProjectMembers,
  Projects,
  Users,
} from '@gitbeaker/rest';
import type { ActionToken, OrchestratorToken, ToolToken } from '../settings/tokens.ts';
import type { HttpClient, HttpRequest, HttpStream } from './client.ts';
import { pages, type Query, withQuery } from './gitlab-pages.ts';
import { requesterOn } from './gitlab-requester.ts';

export interface GitLabApiOptions {
  readonly http: HttpClient;
  /** `https://gitlab.example.org`, with a path where GitLab lives below one. */
  readonly baseUrl: string;
  readonly token: OrchestratorToken | ActionToken | ToolToken;
}

/**
 * GitLab's REST API for one token. Single objects go through Gitbeaker's resources, whose requests run on our
 * client; lists and raw files are read here, because their pages must follow GitLab's links unchanged and their
 * size has no bound.
 */
export interface GitLabApi {
  readonly baseUrl: string;
  resources(signal?: AbortSignal): GitLabResources;
  /** Rows of a list, page by page, in the order that GitLab gives. `path` as below `/api/v4`. */
  pages(path: string, query?: Query, signal?: AbortSignal): AsyncIterable<readonly unknown[]>;
  stream(path: string, query?: Query, signal?: AbortSignal): Promise<HttpStream>;
  /** One request whose body and answer are JSON in GitLab's own names; the answer is for the caller to parse. */
  json(request: GitLabRequest): Promise<unknown>;
  /** Headers of a HEAD request, names in lower case. */
  head(path: string, query?: Query, signal?: AbortSignal): Promise<Readonly<Record<string, string>>>;
}

export interface GitLabRequest extends Pick<HttpRequest, 'method' | 'idempotent' | 'signal' | 'retry'> {
  /** Below `/api/v4`. */
  readonly path: string;
  readonly query?: Query;
  readonly body?: Readonly<Record<string, unknown>>;
}

export interface GitLabResources {
  readonly users: Users;
  readonly projects: Projects;
  readonly members: ProjectMembers;
  readonly mergeRequests: MergeRequests;
  readonly discussions: MergeRequestDiscussions;
  readonly notes: MergeRequestNotes;
  readonly jobs: Jobs;
}

export function createGitLabApi({ http, baseUrl, token }: GitLabApiOptions): GitLabApi {
  const host = baseUrl.replace(/\/+$/, '');
  const url = (path: string, query?: Query) => withQuery(`${host}/api/v4/${path}`, query);
  const headers = () => ({ 'private-token': token.reveal() });
  return {
    baseUrl: host,
    resources(signal) {
      const options = {
        host,
        token: async () => token.reveal(),
        requesterFn: requesterOn(http, signal),
        // Deadlines are our client's; this one would also cover the waiting between attempts.
        queryTimeout: null,
      };
      return {
        users: new Users(options),
        projects: new Projects(options),
        members: new ProjectMembers(options),
        mergeRequests: new MergeRequests(options),
        discussions: new MergeRequestDiscussions(options),
        notes: new MergeRequestNotes(options),
        jobs: new Jobs(options),
      };
    },
    pages: (path, query, signal) =>
      pages({
        http,
        headers: headers(),
        first: url(path, { per_page: 100, ...query }),
        ...(signal ? { signal } : {}),
      }),
    stream: (path, query, signal) =>
      http.stream({ url: url(path, query), headers: headers(), ...(signal ? { signal } : {}) }),
    async json({ path, query, body, ...request }) {
      const answer = await http.request({
        ...request,
        url: url(path, query),
        headers: {
          accept: 'application/json',
          ...headers(),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return answer.json();
    },
    async head(path, query, signal) {
      const answer = await http.request({
        method: 'HEAD',
        url: url(path, query),
        headers: headers(),
        ...(signal && { signal }),
      });
      return answer.headers;
    },
  };
}

/** `group/app` as one path segment of the API. */
export const projectPath = (project: string | number): string => encodeURIComponent(String(project));

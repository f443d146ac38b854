import { z } from 'zod';
import type { Destinations, HttpClient } from '../http/client.ts';
import type { Comparison } from './commits.ts';
import type { Release } from './releases.ts';
import type { Upstream } from './repository.ts';

export interface Asking {
  readonly http: HttpClient;
  readonly within: Destinations;
  readonly signal: AbortSignal | undefined;
}

/** What is read of one source repository. All throw `HttpError`, and `ZodError` for what is no answer of such a host. */
export interface HostReader {
  /** Drafts left out, the newest first. */
  releases(): Promise<readonly Release[]>;
  tags(): Promise<readonly string[]>;
  compare(base: string, head: string): Promise<Comparison>;
}

export const readerOf = (upstream: Upstream, asking: Asking): HostReader =>
  upstream.kind === 'GitHub' ? github(upstream, asking) : gitlab(upstream, asking);

/** Of releases and of tags: 300 go back years, also where many charts share a repository. */
const MAX_PAGES = 3;
const PAGE = 100;
/** Notes of 100 releases, or a comparison with its patches. */
const MAX_BYTES = 24 * 1024 * 1024;

const text = z
  .string()
  .nullish()
  .transform((value) => value ?? '');
const GitHubRelease = z.object({
  tag_name: z.string(),
  name: text,
  body: text,
  draft: z.boolean().optional(),
});
const GitLabRelease = z.object({ tag_name: z.string(), name: text, description: text });
const Tag = z.object({ name: z.string() });
const GitHubComparison = z.object({
  total_commits: z.int(),
  commits: z.array(z.object({ sha: z.string(), commit: z.object({ message: z.string() }) })),
  files: z.array(z.object({ filename: z.string() })).optional(),
});
const GitLabCommit = z.object({ id: z.string(), message: z.string() });

function github({ api, path }: Upstream, asking: Asking): HostReader {
  const at = `${api}/repos/${path}`;
  return {
    async releases() {
      const rows = await listed(`${at}/releases`, GitHubRelease, asking);
      return rows
        .filter(({ draft }) => draft !== true)
        .map(({ tag_name: tag, name, body }) => ({ tag, name, body }));
    },
    tags: async () => (await listed(`${at}/tags`, Tag, asking)).map(({ name }) => name),
    async compare(base, head) {
      const url = `${at}/compare/${encodeURIComponent(base)}...${encodeURIComponent(head)}`;
      const { total_commits: total, commits, files = [] } = GitHubComparison.parse(await got(url, asking));
      return {
        base,
        head,
        total,
        commits: commits.map(({ sha, commit }) => ({ sha, message: commit.message })),
        paths: files.map(({ filename }) => filename),
      };
    },
  };
}

function gitlab({ api, path }: Upstream, asking: Asking): HostReader {
  const at = `${api}/projects/${encodeURIComponent(path)}`;
  return {
    async releases() {
      const rows = await listed(`${at}/releases`, GitLabRelease, asking);
      return rows.map(({ tag_name: tag, name, description: body }) => ({ tag, name, body }));
    },
    tags: async () => (await listed(`${at}/repository/tags`, Tag, asking)).map(({ name }) => name),
    async compare(base, head) {
      // The comparison itself would bring every patch.
      const url = `${at}/repository/commits?ref_name=${encodeURIComponent(`${base}..${head}`)}`;
      const commits = await listed(url, GitLabCommit, asking);
      const total = commits.length < MAX_PAGES * PAGE ? commits.length : undefined;
      return {
        base,
        head,
        total,
        paths: [],
        commits: commits.map(({ id, message }) => ({ sha: id, message })),
      };
    },
  };
}

async function listed<T>(url: string, row: z.ZodType<T>, asking: Asking): Promise<readonly T[]> {
  const rows: T[] = [];
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const paged = new URL(url);
    paged.searchParams.set('per_page', String(PAGE));
    paged.searchParams.set('page', String(page));
    const found = z.array(row).parse(await got(paged.href, asking));
    rows.push(...found);
    if (found.length < PAGE) break;
  }
  return rows;
}

async function got(url: string, { http, within, signal }: Asking): Promise<unknown> {
  const answer = await http.request({
    url,
    within,
    headers: { accept: 'application/json' },
    maxBytes: MAX_BYTES,
    ...(signal !== undefined && { signal }),
  });
  return answer.json();
}

import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';

export interface FakeUpstream {
  /** Newest first, as both hosts list them. */
  readonly releases?: readonly {
    readonly tag: string;
    readonly name?: string;
    readonly body: string;
    readonly draft?: boolean;
  }[];
  readonly tags?: readonly string[];
  /** Between `BASE...HEAD`. */
  readonly comparisons?: Readonly<
    Record<
      string,
      {
        readonly commits: readonly { readonly sha: string; readonly message: string }[];
        readonly files?: readonly string[];
      }
    >
  >;
}

export interface UpstreamServer {
  /** `http://127.0.0.1:PORT/` */
  readonly url: string;
  /** Where a GitHub's API begins, and a GitLab's. */
  readonly github: string;
  readonly gitlab: string;
  readonly requests: { readonly path: string; readonly authorized: boolean }[];
  /** What neither host would have been asked by a correct client. */
  readonly violations: string[];
  /** Answered to everything from now on. */
  fail: number | undefined;
  close(): Promise<void>;
}

/** GitHub shows no more of a comparison. */
const COMPARED = 250;

/** The public APIs of GitHub and GitLab on loopback, for repositories by their path `group/app`. Strict: GET only, known parameters only. */
export async function startUpstream(
  repositories: Readonly<Record<string, FakeUpstream>>,
): Promise<UpstreamServer> {
  const server = createServer((request, response) => {
    const { status, json } =
      upstream.fail === undefined
        ? answer(request)
        : { status: upstream.fail, json: { message: 'API rate limit exceeded for 192.0.2.7.' } };
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the stand-in has no port');
  const url = `http://127.0.0.1:${address.port}/`;
  const upstream: UpstreamServer = {
    url,
    github: `${url}github`,
    gitlab: `${url}gitlab/api/v4`,
    requests: [],
    violations: [],
    fail: undefined,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return upstream;

  function answer(request: IncomingMessage): { readonly status: number; readonly json: unknown } {
    const at = new URL(request.url ?? '/', url);
    upstream.requests.push({
      path: at.pathname + at.search,
      authorized:
        request.headers.authorization !== undefined || request.headers['private-token'] !== undefined,
    });
    if (request.method !== 'GET') upstream.violations.push(`${request.method} ${at.pathname}`);
    const rows = onGitHub(at) ?? onGitLab(at);
    if (rows === undefined) return { status: 404, json: { message: 'Not Found' } };
    return { status: 200, json: Array.isArray(rows) ? page(at, rows) : rows };
  }

  function page(at: URL, rows: readonly unknown[]): readonly unknown[] {
    for (const name of at.searchParams.keys())
      if (!['page', 'per_page', 'ref_name'].includes(name))
        upstream.violations.push(`unknown parameter ${name}`);
    const size = Number(at.searchParams.get('per_page') ?? 20);
    const start = (Number(at.searchParams.get('page') ?? 1) - 1) * size;
    return rows.slice(start, start + size);
  }

  function onGitHub({ pathname }: URL): unknown {
    const [, path = '', what = ''] = /^\/github\/repos\/([^/]+\/[^/]+)\/(.+)$/.exec(pathname) ?? [];
    const repository = repositories[path];
    if (repository === undefined) return undefined;
    const { releases = [], tags = [], comparisons = {} } = repository;
    if (what === 'releases')
      return releases.map(({ tag, name = null, body, draft = false }) => ({
        tag_name: tag,
        name,
        body,
        draft,
      }));
    if (what === 'tags') return tags.map((name) => ({ name, commit: { sha: '0'.repeat(40) } }));
    const compared = /^compare\/(.+)$/.exec(what)?.[1];
    const comparison = compared === undefined ? undefined : comparisons[decodeURIComponent(compared)];
    return (
      comparison && {
        total_commits: comparison.commits.length,
        commits: comparison.commits
          .slice(0, COMPARED)
          .map(({ sha, message }) => ({ sha, commit: { message } })),
        files: comparison.files?.map((filename) => ({ filename })),
      }
    );
  }

  function onGitLab({ pathname, searchParams }: URL): unknown {
    const [, path = '', what = ''] = /^\/gitlab\/api\/v4\/projects\/([^/]+)\/(.+)$/.exec(pathname) ?? [];
    const repository = repositories[decodeURIComponent(path)];
    if (repository === undefined) return undefined;
    const { releases = [], tags = [], comparisons = {} } = repository;
    if (what === 'releases')
      return releases.map(({ tag, name, body }) => ({ tag_name: tag, name, description: body }));
    if (what === 'repository/tags') return tags.map((name) => ({ name }));
    if (what !== 'repository/commits') return undefined;
    const range = searchParams.get('ref_name')?.replace('..', '...') ?? '';
    return comparisons[range]?.commits.map(({ sha, message }) => ({
      id: sha,
      message,
      title: message.split('\n')[0],
    }));
  }
}

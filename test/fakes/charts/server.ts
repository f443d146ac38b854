import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { stringify } from 'yaml';

/** A chart that the stand-in offers, both in its index and in its registry. */
export interface OfferedChart {
  readonly name: string;
  readonly version: string;
  readonly bytes: Uint8Array;
  /** Default: the true one. */
  readonly digest?: string;
}

export interface ChartServerOptions {
  readonly charts: readonly OfferedChart[];
  /** Wanted for the index and for tokens. */
  readonly login?: { readonly user: string; readonly password: string };
  /** Replaces `index.yaml`. */
  readonly index?: string;
  /** Packed charts of the index are redirected to, as to a storage of files. */
  readonly storage?: string;
  /** Tags on one page of the list. */
  readonly pageSize?: number;
}

export interface ChartServer {
  /** `http://127.0.0.1:PORT/` */
  readonly url: string;
  readonly host: string;
  /** `oci://127.0.0.1:PORT/charts` */
  readonly oci: string;
  /** `METHOD path`, and who asked. */
  readonly requests: readonly { readonly line: string; readonly authorization: string | undefined }[];
  readonly faults: string[];
  close(): Promise<void>;
}

const LAYER = 'application/vnd.cncf.helm.chart.content.v1.tar+gzip';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';

/**
 * A chart repository with an index and an OCI registry with tokens, on loopback. Strict: a request that no client of
 * theirs would make (another method, no Accept for a manifest, a token for something else) is answered 400 and kept in
 * `faults`.
 */
export async function startChartServer(options: ChartServerOptions): Promise<ChartServer> {
  const requests: { line: string; authorization: string | undefined }[] = [];
  const faults: string[] = [];
  const tokens = new Set<string>();
  const server = createServer((request, response) => {
    requests.push({ line: `${request.method} ${request.url}`, authorization: request.headers.authorization });
    const { status, body, headers = {} } = answer(request);
    response.writeHead(status, headers).end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the chart server has no port');
  const host = `127.0.0.1:${address.port}`;
  return {
    url: `http://${host}/`,
    host,
    oci: `oci://${host}/charts`,
    requests,
    faults,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };

  function answer(request: IncomingMessage): Reply {
    const url = new URL(request.url ?? '/', `http://${request.headers.host}`);
    if (request.method !== 'GET') return fault(`${request.method} ${url.pathname}`);
    if (url.pathname === '/token') return giveToken(request, url);
    if (url.pathname.startsWith('/v2/')) return registry(request, url);
    if (!loggedIn(request)) return reply(401, 'who are you?', { 'www-authenticate': 'Basic realm="charts"' });
    if (url.pathname === '/index.yaml') return reply(200, options.index ?? indexOf(options.charts));
    const chart = options.charts.find((one) => url.pathname === `/${fileName(one)}`);
    if (chart === undefined) return reply(404, 'no such chart');
    if (options.storage !== undefined)
      return reply(302, '', { location: `${options.storage}${fileName(chart)}` });
    return reply(200, chart.bytes);
  }

  function registry(request: IncomingMessage, url: URL): Reply {
    const parts = /^\/v2\/(charts\/([^/]+))\/(manifests|blobs|tags)\/(.+)$/.exec(url.pathname);
    if (parts === null) return fault(`GET ${url.pathname}`);
    const [, repository = '', name = '', what = '', last = ''] = parts;
    if (!tokens.has(`${repository} ${request.headers.authorization}`)) {
      const scope = `repository:${repository}:pull`;
      const challenge = `Bearer realm="http://${request.headers.host}/token",service="charts",scope="${scope}"`;
      return reply(401, '{"errors":[{"code":"UNAUTHORIZED"}]}', { 'www-authenticate': challenge });
    }
    const charts = options.charts.filter((one) => one.name === name);
    if (charts.length === 0) return reply(404, '{"errors":[{"code":"NAME_UNKNOWN"}]}');
    if (what === 'tags') return tags(url, charts);
    if (what === 'blobs') {
      const blob = charts.find((one) => digestOf(one) === last);
      return blob === undefined ? reply(404, '') : reply(200, blob.bytes);
    }
    if (!String(request.headers.accept).includes(MANIFEST)) return fault(`Accept of ${url.pathname}`);
    const chart = charts.find((one) => one.version.replaceAll('+', '_') === last);
    if (chart === undefined) return reply(404, '{"errors":[{"code":"MANIFEST_UNKNOWN"}]}');
    return reply(200, manifestOf(chart), { 'content-type': MANIFEST });
  }

  function tags(url: URL, charts: readonly OfferedChart[]): Reply {
    const all = charts.map((one) => one.version.replaceAll('+', '_')).sort();
    const after = url.searchParams.get('last');
    const rest = after === null ? all : all.slice(all.indexOf(after) + 1);
    const page = rest.slice(0, options.pageSize ?? rest.length);
    const more = page.length < rest.length;
    const next = `<${url.pathname}?last=${page.at(-1)}&n=1000>; rel="next"`;
    return reply(200, JSON.stringify({ name: url.pathname, tags: page }), more ? { link: next } : {});
  }

  function giveToken(request: IncomingMessage, url: URL): Reply {
    if (!loggedIn(request)) return reply(401, 'who are you?');
    const repository = /^repository:(charts\/[^:]+):pull$/.exec(url.searchParams.get('scope') ?? '')?.[1];
    if (repository === undefined || url.searchParams.get('service') !== 'charts')
      return fault(`token for ${url.search}`);
    const token = createHash('sha256').update(repository).digest('hex');
    tokens.add(`${repository} Bearer ${token}`);
    return reply(200, JSON.stringify({ token, expires_in: 300 }));
  }

  function loggedIn(request: IncomingMessage): boolean {
    if (options.login === undefined) return true;
    const { user, password } = options.login;
    return request.headers.authorization === `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  }

  function fault(what: string): Reply {
    faults.push(what);
    return reply(400, `unexpected: ${what}`);
  }
}

const fileName = ({ name, version }: OfferedChart): string => `${name}-${version}.tgz`;

const digestOf = ({ bytes, digest }: OfferedChart): string =>
  digest ?? `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

function indexOf(charts: readonly OfferedChart[]): string {
  const entries: Record<string, object[]> = {};
  for (const chart of charts) {
    const { name, version } = chart;
    const list = entries[name] ?? [];
    entries[name] = list;
    list.push({
      apiVersion: 'v2',
      name,
      version,
      digest: digestOf(chart).slice('sha256:'.length),
      urls: [fileName(chart)],
    });
  }
  return stringify({ apiVersion: 'v1', entries, generated: '2026-01-01T00:00:00Z' }, { indentSeq: false });
}

function manifestOf(chart: OfferedChart): string {
  return JSON.stringify({
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: {
      mediaType: 'application/vnd.cncf.helm.config.v1+json',
      digest: `sha256:${'0'.repeat(64)}`,
      size: 2,
    },
    layers: [{ mediaType: LAYER, digest: digestOf(chart), size: chart.bytes.length }],
  });
}

interface Reply {
  readonly status: number;
  readonly body: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

const reply = (status: number, body: string | Uint8Array, headers: Reply['headers'] = {}): Reply => ({
  status,
  body,
  headers,
});

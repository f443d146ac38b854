import type { ApplicationReport, GateReport } from '../delivery/gate/report.ts';

/** A host that is not known by its name, or whose API lies elsewhere. */
export interface UpstreamHost {
  readonly kind: 'GitHub' | 'GitLab';
  /** Where paths of its REST API begin: `https://github.example.org/api/v3`. */
  readonly api: string;
}

export interface UpstreamRules {
  /** By host, `git.example.org`. */
  readonly hosts?: ReadonlyMap<string, UpstreamHost>;
  /** Read also where no file of the repository names them. */
  readonly allowedHosts?: readonly string[];
}

/** One source repository, and the versions that a chart moved between. */
export interface Upstream extends UpstreamHost {
  /** `github.com/group/app` */
  readonly name: string;
  /** `group/app` */
  readonly path: string;
  readonly chart: string;
  readonly moves: { readonly chart: Move; readonly app: Move | undefined };
}

export interface Move {
  readonly from: string;
  readonly to: string;
}

export type Found =
  | { readonly kind: 'Upstreams'; readonly upstreams: readonly Upstream[] }
  /** Completes a sentence. */
  | { readonly kind: 'None'; readonly why: string };

/** Each costs some requests, and a bump moves one thing. */
const MAX_UPSTREAMS = 3;

/** Where the bumped charts say that they are developed, as far as anybody may look there. */
export function upstreamsOf({ applications }: GateReport, rules: UpstreamRules): Found {
  const moved = applications.filter(({ base, head }) => base && head && base.version !== head.version);
  if (moved.length === 0) return none('no chart moves from one version to another');
  const declared = moved.flatMap((application) =>
    (application.sources ?? []).map((source) => ({ ...source, application })),
  );
  if (declared.length === 0) return none('the chart declares no source repository');
  const known = declared.flatMap((one) => {
    const at = located(new URL(one.url), rules);
    return at === undefined ? [] : [{ ...one, ...at }];
  });
  if (known.length === 0)
    return none('what the chart declares as its sources is neither a repository of GitHub nor one of GitLab');
  const open = known.filter(({ named, host }) => named || rules.allowedHosts?.includes(host));
  if (open.length === 0)
    return none(`no file of the repository names ${[...new Set(known.map(({ host }) => host))].join(', ')}`);
  const upstreams = new Map<string, Upstream>();
  for (const { application, host, kind, api, path } of open) {
    const name = `${host}/${path}`;
    const upstream = upstreamOf(application, { kind, api, name, path });
    if (upstream !== undefined && !upstreams.has(name)) upstreams.set(name, upstream);
  }
  return { kind: 'Upstreams', upstreams: [...upstreams.values()].slice(0, MAX_UPSTREAMS) };
}

const none = (why: string): Found => ({ kind: 'None', why });

function upstreamOf(
  { base, head }: ApplicationReport,
  at: Pick<Upstream, 'kind' | 'api' | 'name' | 'path'>,
): Upstream | undefined {
  if (base === undefined || head === undefined) return undefined;
  const [from, to] = [base.appVersion, head.appVersion];
  const app = from === undefined || to === undefined || from === to ? undefined : { from, to };
  return { ...at, chart: head.chart, moves: { chart: { from: base.version, to: head.version }, app } };
}

function located(
  url: URL,
  { hosts }: UpstreamRules,
): (UpstreamHost & { readonly host: string; readonly path: string }) | undefined {
  const { host } = url;
  const known = hosts?.get(host) ?? byName(host);
  if (url.username !== '' || url.password !== '' || known === undefined) return undefined;
  const path = pathOf(url.pathname, known.kind);
  return path === undefined ? undefined : { ...known, host, path };
}

function byName(host: string): UpstreamHost | undefined {
  if (host === 'github.com') return { kind: 'GitHub', api: 'https://api.github.com' };
  // As such hosts are called; another one is configured.
  return /^gitlab\.[a-z0-9.-]+$/.test(host) ? { kind: 'GitLab', api: `https://${host}/api/v4` } : undefined;
}

/** GitHub's repositories lie two deep; of GitLab's what comes after `/-/` is a page of the repository. */
function pathOf(pathname: string, kind: UpstreamHost['kind']): string | undefined {
  const [repository = ''] = pathname.split('/-/');
  const segments = repository.split('/').filter((segment) => segment !== '');
  const own = kind === 'GitHub' ? segments.slice(0, 2) : segments;
  const last = own.pop()?.replace(/\.git$/, '');
  const path = [...own, last].join('/');
  return own.length > 0 && /^[\w.-]+(\/[\w.-]+){1,9}$/.test(path) && !/(^|\/)\.{1,2}(\/|$)/.test(path)
    ? path
    : undefined;
}

import {
  ARTIFACTS_URL,
  CLUSTER_URL,
  FARM_API_URL,
  GITLAB_URL,
  isReadableRef,
  NAMESPACE,
  SCOPE,
} from './places.ts';

/**
 * Whether a request (method and URL) is for something that the run may not read. What a case has no answer for is no
 * harm by itself: a file that is not there, a log that is gone. Another project, merge request, commit, branch,
 * namespace or host is, and so is whatever writes.
 */
export function isBeyond(request: string): boolean {
  const [method, href = ''] = request.split(' ');
  if (method !== 'GET') return true;
  const url = new URL(href);
  if (url.origin === GITLAB_URL) return isForeignToGitLab(url);
  if (url.origin === CLUSTER_URL) return isForeignToKonflux(url);
  return ![ARTIFACTS_URL, FARM_API_URL].some((base) => href.startsWith(`${base}/`));
}

function isForeignToGitLab({ pathname, searchParams }: URL): boolean {
  const [, project, rest = ''] = /^\/api\/v4\/projects\/([^/]+)(.*)$/.exec(pathname) ?? [];
  if (project === undefined || decodeURIComponent(project) !== SCOPE.project) return true;
  const iid = /^\/merge_requests\/(\d+)/.exec(rest)?.[1] ?? String(SCOPE.iid);
  const commit = /^\/repository\/commits\/([^/]+)/.exec(rest)?.[1] ?? SCOPE.sha;
  const ref = searchParams.get('ref') ?? searchParams.get('sha') ?? SCOPE.sha;
  return iid !== String(SCOPE.iid) || commit !== SCOPE.sha || !isReadableRef(ref);
}

function isForeignToKonflux({ pathname, searchParams }: URL): boolean {
  const namespace = /\/namespaces\/([^/]+)\//.exec(pathname)?.[1];
  const sha = searchParams.get('labelSelector')?.split('=')[1] ?? SCOPE.sha;
  return namespace !== NAMESPACE || sha !== SCOPE.sha;
}

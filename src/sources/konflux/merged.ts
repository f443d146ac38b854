import type { KonfluxAccess } from './access.ts';
import type { Captured } from './json/list-reader.ts';
import { stringAt } from './json/string-at.ts';
import { listed } from './pages.ts';
import { SHA_LABELS } from './scope.ts';

export type Resource = 'pipelineruns' | 'taskruns';

/** What is known after the last line. */
export class Gaps {
  readonly messages: string[] = [];
  /** APIs that gave nothing at all. */
  silent = 0;

  text(): string | undefined {
    return this.messages.length === 0 ? undefined : this.messages.join(' ');
  }
}

/**
 * All objects of a commit, each once: the cluster's, then what only KubeArchive still has. In this order,
 * since objects go from the one to the other: read the other way round, one that moves meanwhile would be in neither.
 * Of an object that both have the cluster's counts, which is the newer. Only uids are kept: each is
 * to be used before the next.
 */
export async function* merged(
  access: KonfluxAccess,
  {
    resource,
    sha,
    signal,
  }: { readonly resource: Resource; readonly sha: string; readonly signal: AbortSignal },
  gaps: Gaps,
): AsyncGenerator<Captured> {
  const { namespace } = access.address;
  const path = `/apis/tekton.dev/v1/namespaces/${namespace}/${resource}`;
  const uids = new Set<string>();
  let foreign = 0;
  for (const api of apisOf(access)) {
    let silent = false;
    for (const label of SHA_LABELS) {
      if (silent) break;
      const items = listed(api, { path, labelSelector: `${label}=${sha}`, signal }, (shortfall) => {
        gaps.messages.push(shortfall.message);
        silent = shortfall.silent;
        if (silent) gaps.silent += 1;
      });
      for await (const item of items) {
        const { json } = item;
        // Not the server's word alone: what it was not asked for is left out.
        const isOwn =
          stringAt(json, ['metadata', 'labels', label]) === sha &&
          stringAt(json, ['metadata', 'namespace']) === namespace;
        if (!isOwn) foreign += 1;
        else if (isNew(uids, stringAt(json, ['metadata', 'uid']))) yield item;
      }
    }
  }
  if (foreign > 0) gaps.messages.push(`${foreign} items of other commits were sent and left out.`);
}

export const apisOf = ({ cluster, archive }: KonfluxAccess) =>
  archive === undefined ? [cluster] : [cluster, archive];

function isNew(uids: Set<string>, uid: string | undefined): boolean {
  if (uid === undefined) return true;
  if (uids.has(uid)) return false;
  uids.add(uid);
  return true;
}

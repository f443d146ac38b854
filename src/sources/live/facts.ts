import { ZodError } from 'zod';
import { type HttpClient, HttpError } from '../../http/client.ts';
import type { ToolToken } from '../../settings/tokens.ts';
import { currentIdentity } from '../konflux/kubeconfig.ts';
import { type Cluster, type Count, countOf, type Paging } from './count.ts';

export interface LiveFactsOptions {
  readonly http: HttpClient;
  /** The text of a kubeconfig that may list objects and nothing more: a secret of the tool tier as a whole. */
  readonly kubeconfig: ToolToken;
  /** Told what in the kubeconfig is a secret by itself. */
  readonly onSecret?: (value: string) => void;
  /** Told why there are no facts, in one sentence. */
  readonly warn: (message: string) => void;
  /** How lists are read, default 20 pages of 250: beyond, there are many. */
  readonly paging?: Paging;
}

/** Versions that a bump takes from a CRD. */
export interface DroppedApi {
  /** `bgppeers.metallb.io` */
  readonly crd: string;
  readonly group: string;
  readonly versions: readonly string[];
  /** Undefined: the CRD is gone, and its objects with it. */
  readonly target: string | undefined;
}

/** What is stored of them, as text; undefined where nothing is dropped, or it could not be found out. */
export type LiveFacts = (dropped: readonly DroppedApi[], signal?: AbortSignal) => Promise<string | undefined>;

export type LiveFactsOpened =
  | { readonly kind: 'Ok'; readonly facts: LiveFacts }
  | { readonly kind: 'Invalid'; readonly message: string };

/** Connects nothing yet: what can be wrong here is wrong in the kubeconfig. Only GET requests are ever made. */
export function openLiveFacts(options: LiveFactsOptions): LiveFactsOpened {
  const { http, kubeconfig, onSecret, warn, paging = PAGING } = options;
  const found = currentIdentity(kubeconfig.reveal());
  if (found.kind === 'Invalid') return found;
  const { identity, server, namespace } = found;
  for (const secret of identity.secrets) onSecret?.(secret);
  const cluster: Cluster = { http, server, identity, namespace, paging };
  return {
    kind: 'Ok',
    async facts(dropped, signal) {
      if (dropped.length === 0) return undefined;
      try {
        return await textOf(cluster, unique(dropped), signal);
      } catch (error) {
        if (!(error instanceof HttpError || error instanceof ZodError)) throw error;
        const why = error instanceof HttpError ? error.message : 'an answer is none of an API server';
        warn(`What is stored in the cluster could not be counted: ${why}`);
        return undefined;
      }
    },
  };
}

/** Metadata alone: 250 of them with their managed fields are some 2 MiB. */
const PAGING: Paging = { items: 250, pages: 20 };
/** Of one bump: more is no bump of a version, and each costs requests. */
const MAX_CRDS = 8;

async function textOf(
  cluster: Cluster,
  dropped: readonly DroppedApi[],
  signal: AbortSignal | undefined,
): Promise<string> {
  const lines: string[] = [];
  let unseen = false;
  for (const one of dropped.slice(0, MAX_CRDS)) {
    const count = await countOf(cluster, one, signal);
    unseen ||= count.kind === 'NotPermitted' || count.kind === 'NoName' || count.elsewhere !== undefined;
    lines.push(`- ${nameOf(one)}: ${wordsOf(count, one)}`);
  }
  const more = dropped.length - MAX_CRDS;
  if (more > 0) lines.push(`- ${more} more of them: nobody looked, the list is cut after ${MAX_CRDS}.`);
  return [
    'Counted in the cluster now, before the change is applied. Versions of one CRD show the same objects:',
    ...lines,
    ...(unseen || more > 0
      ? ['Where it says "not permitted to check" or is cut nobody looked: that is no evidence of safety.']
      : []),
  ].join('\n');
}

/** Names come out of charts: whatever they are, they stay on their line. */
const nameOf = ({ crd, versions }: DroppedApi): string =>
  `${crd} on ${versions.join(', ')}`.replaceAll(/[^\x21-\x7e ]/g, '?').slice(0, 300);

function wordsOf(count: Count, { target }: DroppedApi): string {
  switch (count.kind) {
    case 'NotPermitted':
      return 'not permitted to check';
    case 'NoName':
      return 'not permitted to check: these are no names that a cluster has';
    case 'Absent':
      return 'the cluster does not have it, so there are 0 live objects';
    case 'Counted': {
      const { objects, complete, through, elsewhere } = count;
      const number = `${complete ? '' : 'at least '}${objects} live object${objects === 1 ? '' : 's'}`;
      const where =
        elsewhere === undefined ? '' : ` in namespace ${elsewhere}, not permitted to check the others`;
      const version =
        through === undefined ? '' : ` (the cluster serves none of these; counted on ${through})`;
      const end = target === undefined && objects > 0 ? ', which are deleted with the CRD' : '';
      return `${number}${where}${version}${end}`;
    }
  }
}

/** Several applications may bring the same CRD. */
function unique(dropped: readonly DroppedApi[]): readonly DroppedApi[] {
  const found = new Map<string, DroppedApi>();
  for (const one of dropped) {
    const before = found.get(one.crd);
    const versions = [...new Set([...(before?.versions ?? []), ...one.versions])];
    found.set(one.crd, { ...one, versions });
  }
  return [...found.values()];
}

import { z } from 'zod';
import { type HttpClient, HttpError } from '../../http/client.ts';
import type { Identity } from '../konflux/kubeconfig.ts';
import type { DroppedApi } from './facts.ts';

export interface Cluster {
  readonly http: HttpClient;
  readonly server: string;
  readonly identity: Identity;
  /** Looked into where the whole cluster may not be. */
  readonly namespace: string | undefined;
  readonly paging: Paging;
}

export interface Paging {
  readonly items: number;
  readonly pages: number;
}

export type Count =
  | {
      readonly kind: 'Counted';
      readonly objects: number;
      /** False: there are more. */
      readonly complete: boolean;
      /** The version that was asked, where the cluster serves none of the dropped ones. */
      readonly through?: string;
      /** The one namespace that was counted; the others may not be looked into. */
      readonly elsewhere?: string;
    }
  | { readonly kind: 'Absent'; readonly elsewhere?: undefined }
  | { readonly kind: 'NotPermitted'; readonly elsewhere?: undefined }
  /** Nothing that could be asked for. */
  | { readonly kind: 'NoName'; readonly elsewhere?: undefined };

/** Objects of one CRD. Throws `HttpError` for everything but 403 and 404, and `ZodError` for what is no list. */
export async function countOf(
  cluster: Cluster,
  { crd, group, versions }: DroppedApi,
  signal: AbortSignal | undefined,
): Promise<Count> {
  const plural = crd.endsWith(`.${group}`) ? crd.slice(0, -group.length - 1) : '';
  // They become paths of requests that carry a credential.
  if (
    !NAME.test(group) ||
    !NAME.test(plural) ||
    plural.includes('.') ||
    !versions.every((one) => NAME.test(one))
  )
    return { kind: 'NoName' };
  const served = await servedVersions(cluster, group, signal);
  if (served === 'Absent') return { kind: 'Absent' };
  // A group may serve a version of which this CRD has none: only when all of them have none is it not there.
  const known = served ?? versions;
  const asked = [
    ...versions.filter((one) => known.includes(one)),
    ...known.filter((one) => !versions.includes(one)),
  ];
  for (const version of asked) {
    const count = await countedOn(cluster, { group, plural, version }, signal);
    if (count.kind === 'Absent') continue;
    return count.kind === 'Counted' && !versions.includes(version) ? { ...count, through: version } : count;
  }
  return { kind: served === undefined ? 'NotPermitted' : 'Absent' };
}

async function countedOn(
  cluster: Cluster,
  { group, plural, version }: { readonly group: string; readonly plural: string; readonly version: string },
  signal: AbortSignal | undefined,
): Promise<Count> {
  const api = `/apis/${group}/${version}`;
  const everywhere = await counted(cluster, `${api}/${plural}`, signal);
  const { namespace } = cluster;
  if (everywhere.kind !== 'NotPermitted' || namespace === undefined || !NAME.test(namespace))
    return everywhere;
  const there = await counted(cluster, `${api}/namespaces/${namespace}/${plural}`, signal);
  // Not found in a namespace is also what lies in none.
  return there.kind === 'Counted' ? { ...there, elsewhere: namespace } : everywhere;
}

const NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

const Group = z.object({ versions: z.array(z.object({ version: z.string() })) });

/** Undefined: this may not be asked. */
async function servedVersions(
  cluster: Cluster,
  group: string,
  signal: AbortSignal | undefined,
): Promise<readonly string[] | 'Absent' | undefined> {
  const answer = await got(cluster, `/apis/${group}`, 'application/json', signal);
  if (answer.kind === 'Refused') return answer.status === 404 ? 'Absent' : undefined;
  return Group.parse(answer.value)
    .versions.map(({ version }) => version)
    .filter((version) => NAME.test(version));
}

const List = z.object({
  metadata: z.object({ continue: z.string().optional() }),
  /** An API server writes null where metadata alone is asked for and there is none. */
  items: z.array(z.unknown()).nullable(),
});

async function counted(cluster: Cluster, path: string, signal: AbortSignal | undefined): Promise<Count> {
  let objects = 0;
  let next = '';
  for (let page = 0; page < cluster.paging.pages; page += 1) {
    const query = new URLSearchParams({
      limit: String(cluster.paging.items),
      ...(next !== '' && { continue: next }),
    });
    const answer = await got(cluster, `${path}?${query}`, METADATA, signal);
    if (answer.kind === 'Refused') {
      // The API server forgets where a list was: what was counted is there.
      if (answer.status === 410) return { kind: 'Counted', objects, complete: false };
      return { kind: answer.status === 404 ? 'Absent' : 'NotPermitted' };
    }
    const { metadata, items } = List.parse(answer.value);
    objects += items?.length ?? 0;
    next = metadata.continue ?? '';
    if (next === '') return { kind: 'Counted', objects, complete: true };
  }
  return { kind: 'Counted', objects, complete: false };
}

const METADATA = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

type Got =
  | { readonly kind: 'Ok'; readonly value: unknown }
  | { readonly kind: 'Refused'; readonly status: number };

async function got(
  { http, server, identity }: Cluster,
  path: string,
  accept: string,
  signal: AbortSignal | undefined,
): Promise<Got> {
  const { token, tls } = identity;
  try {
    const answer = await http.request({
      url: `${server}${path}`,
      headers: {
        accept,
        'accept-encoding': 'gzip',
        ...(token !== undefined && { authorization: `Bearer ${token.reveal()}` }),
      },
      ...(tls !== undefined && { tls }),
      ...(signal !== undefined && { signal }),
    });
    return { kind: 'Ok', value: answer.json() };
  } catch (error) {
    const status = error instanceof HttpError ? error.status : undefined;
    if (status === 403 || status === 404 || status === 410) return { kind: 'Refused', status };
    throw error;
  }
}

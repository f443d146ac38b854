import { HttpError } from '../../http/client.ts';
import type { KonfluxAccess, KubeApi } from './access.ts';
import type { KnownPod } from './pod.ts';

/** What there is of one container's log. A pod that printed nothing and one whose log is gone are not the same. */
export type ContainerLog =
  | { readonly kind: 'Log'; readonly chunks: AsyncIterable<Uint8Array> }
  /** It ran and wrote nothing. */
  | { readonly kind: 'Empty'; readonly why: string }
  | { readonly kind: 'NotStarted'; readonly why: string }
  /** It has been, and nobody has it any more. */
  | { readonly kind: 'Lost'; readonly why: string }
  /** Somebody who may have it could not be asked. */
  | { readonly kind: 'Unclear'; readonly why: string };

/**
 * Asks KubeArchive first, which has the whole log, while the kubelet turns long ones over; only of a container that
 * still runs the cluster first, since the archive lags behind. What the first does not have, the second is asked for.
 */
export async function containerLog(
  access: KonfluxAccess,
  pod: KnownPod,
  container: string,
  signal: AbortSignal,
): Promise<ContainerLog> {
  const isRunning = pod.containers.some(({ name, state }) => name === container && state === 'Running');
  const { cluster, archive } = access;
  const apis = archive === undefined ? [cluster] : isRunning ? [cluster, archive] : [archive, cluster];
  const path = `/api/v1/namespaces/${access.address.namespace}/pods/${encodeURIComponent(pod.name)}/log`;
  const refusals: Refusal[] = [];
  for (const api of apis) {
    const answer = await ask(api, path, container, signal);
    if (answer.kind === 'Log') return answer;
    if (answer.kind === 'Empty' && !(api === cluster && hasNotStarted(pod, container)))
      return { kind: 'Empty', why: `${container} has written nothing (0 bytes).` };
    if (answer.kind === 'Empty') refusals.push({ kind: 'NotStarted', api: api.name, why: 'waiting' });
    else refusals.push(answer);
  }
  return without(pod, container, refusals, archive !== undefined);
}

/** Of a pod that has no node yet the API server says with 200 that its log is empty. */
function hasNotStarted(pod: KnownPod, container: string): boolean {
  const state = pod.containers.find(({ name }) => name === container)?.state;
  return pod.isLive && (state === 'Waiting' || state === 'Unknown');
}

type Refusal =
  /** 404: the pod, or its log, is not there. */
  | { readonly kind: 'Gone'; readonly api: string }
  /** KubeArchive knows where the log should be, and found no line. */
  | { readonly kind: 'NoLines'; readonly api: string }
  | { readonly kind: 'NotStarted'; readonly api: string; readonly why: string }
  | { readonly kind: 'Failed'; readonly api: string; readonly why: string };

type Answer = Extract<ContainerLog, { kind: 'Log' }> | { readonly kind: 'Empty' } | Refusal;

async function ask(api: KubeApi, path: string, container: string, signal: AbortSignal): Promise<Answer> {
  try {
    const { body } = await api.stream(path, { container }, signal);
    const chunks = body[Symbol.asyncIterator]();
    let first = await chunks.next();
    while (!first.done && first.value.length === 0) first = await chunks.next();
    if (first.done) return { kind: 'Empty' };
    if (isKubeletsExcuse(first.value)) {
      await chunks.return?.();
      return { kind: 'Gone', api: api.name };
    }
    return { kind: 'Log', chunks: joined(first.value, chunks) };
  } catch (error) {
    if (error instanceof HttpError) return refusal(api, error);
    throw error;
  }
}

/** Some kubelets say with status 200 that the container runtime has no log any more, and nothing else. */
function isKubeletsExcuse(chunk: Uint8Array): boolean {
  return (
    chunk.length < 300 &&
    /^unable to retrieve container logs for [a-z-]+:\/\/\S*\s*$/.test(Buffer.from(chunk).toString())
  );
}

async function* joined(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield first;
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

/**
 * The API server says with 400 that a container has not started (`is waiting to start`, with the reason), and what the
 * kubelet could not find.
 */
function refusal(api: KubeApi, error: HttpError): Refusal {
  const said = error.bodyExcerpt ?? '';
  if (error.status === 404) return { kind: /no parsed logs/.test(said) ? 'NoLines' : 'Gone', api: api.name };
  if (error.status === 400) {
    const waiting = /is waiting to start(?:: ([\w .-]{1,200}))?/.exec(said);
    if (waiting !== null) return { kind: 'NotStarted', api: api.name, why: waiting[1] ?? 'waiting' };
    if (/does not have a host assigned/.test(said))
      return { kind: 'NotStarted', api: api.name, why: 'no node has been found for it yet' };
    if (/unable to retrieve container logs|no such file or directory|not found/i.test(said))
      return { kind: 'Gone', api: api.name };
  }
  return { kind: 'Failed', api: api.name, why: error.message };
}

function without(
  pod: KnownPod,
  container: string,
  refusals: readonly Refusal[],
  hasArchive: boolean,
): ContainerLog {
  const waiting = refusals.find((one) => one.kind === 'NotStarted');
  if (waiting?.kind === 'NotStarted')
    return { kind: 'NotStarted', why: `${container} has not started yet (${waiting.why}).` };
  const failed = refusals.flatMap((one) => (one.kind === 'Failed' ? [`${one.api}: ${one.why}`] : []));
  if (failed.length > 0)
    return { kind: 'Unclear', why: `The log of ${container} could not be read (${failed.join('; ')}).` };
  const ended = pod.ending?.slice(0, 500).replace(/\.$/, '');
  const ending = ended === undefined ? '' : ` The pod ended so: ${ended}.`;
  if (refusals.some(({ kind }) => kind === 'NoLines'))
    return {
      kind: 'Lost',
      why: `KubeArchive has no line of ${container}: it wrote nothing, or its log was not kept.${ending}`,
    };
  const archive = hasArchive ? 'KubeArchive has none' : 'there is no KubeArchive to keep it';
  const where = pod.isLive ? 'the node has it no more' : 'its pod is gone from the cluster';
  return {
    kind: 'Lost',
    why: `The log of ${container} is lost: ${where}, and ${archive}. It may have written anything.${ending}`,
  };
}

import { parseDuration } from '../../crds/duration.ts';
import { labelSelector, labelValue } from '../../crds/labels.ts';
import { lingeringSession, reapTime } from '../../crds/lingering.ts';
import { ANNOTATIONS, type KubeObject, LABELS } from '../../crds/meta.ts';
import { SANDBOX_POOLS, type SandboxPool } from '../../crds/sandbox-pool.ts';
import type { Clock } from '../../kube/clock.ts';
import { isKubeError } from '../../kube/errors.ts';
import type { KubeClient } from '../../kube/port.ts';
import type { LingerRequest, SandboxRequest } from '../port.ts';
import type { Claimable } from './claimable.ts';
import { claimPatch, lingerPatch } from './patch.ts';

interface Access<T extends KubeObject> {
  readonly what: Claimable<T>;
  readonly kube: KubeClient;
  readonly clock: Clock;
}

/** A kubelet writes a pod's status now and then: each refusal costs another look. */
const MAX_TRIES = 5;

/** Sandboxes that linger for the session and are not going. Pure. */
export function lingeringFor<T extends KubeObject>(
  sandboxes: readonly T[],
  { sessionId, runNamespace }: { readonly sessionId: string; readonly runNamespace: string },
): readonly T[] {
  return sandboxes.filter((sandbox) => {
    const session = lingeringSession(sandbox);
    return session?.name === sessionId && session.namespace === runNamespace;
  });
}

/**
 * The sandbox in which the session's next run finds its work directory: one that lingers with the very save that the
 * run goes on from, still runs, and is not about to be reaped. Pure.
 */
export function reclaimable<T extends KubeObject>(
  { isUsable }: Claimable<T>,
  sandboxes: readonly T[],
  request: SandboxRequest,
  now: Date,
): T | undefined {
  const { sessionId, savedBy, runNamespace, pool } = request;
  if (sessionId === undefined || savedBy === undefined) return undefined;
  return lingeringFor(sandboxes, { sessionId, runNamespace }).find(
    (pod) =>
      pod.metadata.labels?.[LABELS.pool] === labelValue(pool.name) &&
      pod.metadata.annotations?.[ANNOTATIONS.savedBy] === savedBy &&
      pod.metadata.annotations[ANNOTATIONS.egressOpen] === undefined &&
      reapTime(pod) > now.getTime() &&
      isUsable(pod),
  );
}

/** Whether what the run owns lingered with the save that the run goes on from. */
export const wasReclaimed = (pod: KubeObject, { savedBy }: SandboxRequest): boolean =>
  savedBy !== undefined && pod.metadata.annotations?.[ANNOTATIONS.savedBy] === savedBy;

/**
 * Takes the session's lingering sandbox for the run, in one guarded patch: of several who try one gets it, and a reaper
 * that is about to delete it is refused, or was faster. Undefined: there is none (any more). Throws KubeError.
 */
export async function reclaim<T extends KubeObject>(
  { what, kube, clock }: Access<T>,
  request: SandboxRequest,
): Promise<T | undefined> {
  const { sessionId, savedBy, pool } = request;
  if (sessionId === undefined || savedBy === undefined) return undefined;
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const pod = reclaimable(
      what,
      await ofSession({ what, kube }, pool.namespace, sessionId),
      request,
      clock.now(),
    );
    if (pod === undefined) return undefined;
    try {
      return await kube.patch(what.kind, refOf(pod), claimPatch(pod, request, clock.now()));
    } catch (error) {
      if (!isKubeError(error, 'Conflict', 'NotFound')) throw error;
    }
  }
  return undefined;
}

export type Kept<T extends KubeObject> =
  | { readonly kind: 'Lingers'; readonly kept: T; readonly until: Date }
  | { readonly kind: 'NotKept'; readonly message: string };

/**
 * Lets the run's sandbox linger for its session, unless it does already. `owned`: what carries the run's uid, from the
 * API server. Others that linger for the session hold an older save and are deleted. Throws KubeError.
 */
export async function letLinger<T extends KubeObject>(
  { what, kube, clock }: Access<T>,
  owned: () => Promise<readonly T[]>,
  request: LingerRequest,
): Promise<Kept<T>> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const lingering = lingeringFor(
      await ofSession({ what, kube }, request.namespace, request.sessionId),
      request,
    );
    const already = lingering.find(
      ({ metadata }) => metadata.annotations?.[ANNOTATIONS.savedBy] === request.runUid,
    );
    if (already !== undefined) {
      return { kind: 'Lingers', kept: already, until: new Date(reapTime(already)) };
    }
    const pod = (await owned()).find(what.isUsable);
    if (pod === undefined) return { kind: 'NotKept', message: 'The run has no sandbox that can be used' };
    const terms = termsOf(await poolOf(kube, pod));
    if ('refusal' in terms) return { kind: 'NotKept', message: terms.refusal };
    const until = new Date(clock.now().getTime() + terms.lingerMs);
    try {
      const kept = await kube.patch(what.kind, refOf(pod), lingerPatch(pod, request, until));
      await deleteAll({ what, kube }, lingering);
      return { kind: 'Lingers', kept, until };
    } catch (error) {
      if (!isKubeError(error, 'Conflict', 'NotFound')) throw error;
    }
  }
  return { kind: 'NotKept', message: `The sandbox changed ${MAX_TRIES} times while it was to be kept` };
}

async function ofSession<T extends KubeObject>(
  { what, kube }: Pick<Access<T>, 'what' | 'kube'>,
  namespace: string,
  sessionId: string,
): Promise<readonly T[]> {
  const selector = { [LABELS.session]: labelValue(sessionId), [LABELS.role]: 'active' };
  const { items } = await kube.list(what.kind, { namespace, labelSelector: labelSelector(selector) });
  return items;
}

/** A label holds 63 characters, so a pool's name is compared as a label. */
async function poolOf(kube: KubeClient, pod: KubeObject): Promise<SandboxPool | undefined> {
  const { namespace = '', labels } = pod.metadata;
  const { items } = await kube.list(SANDBOX_POOLS, { namespace });
  return items.find(({ metadata }) => labelValue(metadata.name ?? '') === labels?.[LABELS.pool]);
}

function termsOf(
  pool: SandboxPool | undefined,
): { readonly lingerMs: number } | { readonly refusal: string } {
  if (pool === undefined) return { refusal: 'The SandboxPool is gone' };
  const { duration, max } = pool.spec.linger;
  const lingerMs = parseDuration(duration);
  if (lingerMs <= 0) return { refusal: `SandboxPool ${pool.metadata.name} has linger.duration ${duration}` };
  if (max === 0) return { refusal: `SandboxPool ${pool.metadata.name} has linger.max 0` };
  return { lingerMs };
}

async function deleteAll<T extends KubeObject>(
  { what, kube }: Pick<Access<T>, 'what' | 'kube'>,
  sandboxes: readonly T[],
): Promise<void> {
  for (const pod of sandboxes) {
    const { uid = '', resourceVersion = '' } = pod.metadata;
    try {
      await kube.delete(what.kind, refOf(pod), { uid, resourceVersion });
    } catch (error) {
      // It changed: the reaper sees to it at its deadline.
      if (!isKubeError(error, 'Conflict')) throw error;
    }
  }
}

const refOf = ({ metadata }: KubeObject) => ({
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
});

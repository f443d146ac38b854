import { ANNOTATIONS, type KubeObject, LABELS } from '../../crds/meta.ts';
import type { SandboxPool } from '../../crds/sandbox-pool.ts';
import type { Clock } from '../../kube/clock.ts';
import { systemClock } from '../../kube/clock.ts';
import { isKubeError } from '../../kube/errors.ts';
import type { Pod } from '../../kube/kinds.ts';
import type { KubeClient } from '../../kube/port.ts';
import type { ClaimResult, Sandbox, SandboxProvider, SandboxRequest } from '../port.ts';
import { preferred } from './candidates.ts';
import { type Claimable, PODS } from './claimable.ts';
import { type WaitingLine, waitingLine } from './line.ts';
import { letLinger, reclaim, wasReclaimed } from './linger.ts';
import type { ClaimMetrics } from './metrics.ts';
import { isReady, type OnEmpty, onEmpty } from './on-empty.ts';
import { adoptionPatch, claimPatch, epochOf } from './patch.ts';
import { isOpen, refuse } from './refusal.ts';
import { type PoolSupply, poolSupply } from './supply.ts';

/** A claimed pod, for whoever makes a Sandbox of it. */
export interface OpenPodRequest {
  readonly pod: Pod;
  readonly namespace: string;
  readonly name: string;
  /** The run had it before: an earlier holder may have left a command running. */
  readonly inherited: boolean;
  /** Deletes exactly this pod; idempotent. Throws KubeError. */
  deletePod(): Promise<void>;
  /** Lets it linger for the session where its pool keeps some, else deletes it. Throws KubeError. */
  lingerPod(sessionId: string): Promise<void>;
}

export interface PodPoolOptions extends PoolTerms {
  readonly openPod: (request: OpenPodRequest) => Sandbox;
  /**
   * Pods of a namespace as a cache last saw them; undefined while there is none. It only suggests: the guarded
   * patch is what decides. Left out: every claim lists.
   */
  readonly cachedPods?: (namespace: string) => readonly Pod[] | undefined;
  /** A pod of the pool, without name and owner, for `claim.createOnEmpty`. Left out: runs wait. */
  readonly podOf?: (pool: SandboxPool) => Pod | undefined;
}

/** Sandboxes from the warm pods of a SandboxPool. */
export function podPool({ openPod, cachedPods, podOf, ...terms }: PodPoolOptions): SandboxProvider {
  return claimablePool({
    ...terms,
    what: PODS,
    open: ({ object, namespace, name, inherited, remove, linger }) =>
      openPod({ pod: object, namespace, name, inherited, deletePod: remove, lingerPod: linger }),
    ...(cachedPods === undefined ? {} : { cached: cachedPods }),
    ...(podOf === undefined ? {} : { template: podOf }),
  });
}

/** What claims need, whatever is claimed. */
export interface PoolTerms {
  readonly kube: KubeClient;
  readonly clock?: Clock;
  /** How long after its creation an image that cannot be pulled may still turn out well, default 30 s. */
  readonly pullPatienceMs?: number;
  readonly metrics?: ClaimMetrics;
}

/** What was claimed, for whoever makes a Sandbox of it. */
export interface OpenRequest<T extends KubeObject> {
  readonly object: T;
  readonly namespace: string;
  readonly name: string;
  /** As `OpenPodRequest.inherited`. */
  readonly inherited: boolean;
  /** Deletes exactly this object; idempotent. Throws KubeError. */
  remove(): Promise<void>;
  /** Lets it linger for the session where its pool keeps some, else deletes it. Throws KubeError. */
  linger(sessionId: string): Promise<void>;
}

export interface ClaimablePoolOptions<T extends KubeObject> extends PoolTerms {
  readonly what: Claimable<T>;
  readonly open: (request: OpenRequest<T>) => Sandbox;
  /** A sandbox of the pool, without name and owner, for `claim.createOnEmpty`. Left out: runs wait. */
  readonly template?: (pool: SandboxPool) => T | undefined;
  /** As `PodPoolOptions.cachedPods`. */
  readonly cached?: (namespace: string) => readonly T[] | undefined;
}

/**
 * A claim is one list (does the run own a sandbox already?) and one patch that carries the resourceVersion:
 * whoever patches second is refused and takes another one.
 */
export function claimablePool<T extends KubeObject>(options: ClaimablePoolOptions<T>): SandboxProvider {
  const clock = options.clock ?? systemClock;
  const claims: Claims<T> = {
    ...options,
    clock,
    supply: poolSupply({ ...options, clock }),
    line: waitingLine(clock),
    onEmpty: onEmpty({ pullPatienceMs: PULL_PATIENCE_MS, ...options, clock }),
    beingPatched: new Set(),
  };
  const ongoing = new Map<string, Promise<ClaimResult>>();

  return {
    claim(request, signal) {
      // A run whose controller asks twice at once gets one answer, and one pod.
      const first = ongoing.get(request.runUid);
      if (first !== undefined) return first;
      const claim = claimPod(claims, request, signal).finally(() => ongoing.delete(request.runUid));
      ongoing.set(request.runUid, claim);
      return claim;
    },

    async find(runUid, namespace) {
      const own = newestUsable(claims.what, await claims.supply.owned(runUid, namespace));
      return own && opened(claims, own, false);
    },

    async linger(request) {
      const kept = await letLinger(
        claims,
        () => claims.supply.owned(request.runUid, request.namespace),
        request,
      );
      if (kept.kind === 'NotKept') return kept;
      const { ref } = opened(claims, kept.kept, false);
      return { kind: 'Lingers', ref, until: kept.until };
    },

    async release(runUid, namespace) {
      claims.line.leave(runUid);
      claims.onEmpty.forget(runUid);
      const pods = await claims.supply.owned(runUid, namespace);
      await Promise.all(pods.map((pod) => deletePod(claims, pod)));
      return pods.length === 0;
    },
  };
}

interface Claims<T extends KubeObject> extends ClaimablePoolOptions<T> {
  readonly clock: Clock;
  readonly supply: PoolSupply<T>;
  readonly line: WaitingLine;
  readonly onEmpty: OnEmpty<T>;
  /** uids of pods that a claim of this process is patching now: no other need try them. */
  readonly beingPatched: Set<string>;
}

const PULL_PATIENCE_MS = 30_000;

/** A round is lost only to another claim that won its pod; so many in a row mean a pool in full motion. */
const MAX_ROUNDS = 10;

async function claimPod<T extends KubeObject>(
  claims: Claims<T>,
  request: SandboxRequest,
  signal?: AbortSignal,
): Promise<ClaimResult> {
  const { supply, line, beingPatched } = claims;
  const kept = await keptPod(claims, request);
  if (kept !== undefined) return claimed(claims, kept, request);
  for (let round = 0; round < MAX_ROUNDS; round++) {
    signal?.throwIfAborted();
    const ahead = line.ahead(request);
    const free = (await supply.free(request.pool, round > 0)).filter((pod) => !beingPatched.has(uidOf(pod)));
    const nothing = free.length <= ahead;
    // A run in line was found to own no pod when it joined, and nobody else claims for it meanwhile.
    if (!(nothing && line.waits(request)) || claims.onEmpty.isMaking(request.runUid)) {
      const own = await ownPod(claims, request);
      if (own !== undefined) return claimed(claims, own, request);
    }
    if (nothing) return notFree(claims, request, ahead);
    const pod = preferred(
      free.filter((candidate) => !beingPatched.has(uidOf(candidate))),
      request.runUid,
    );
    const won = pod && (await tryClaim(claims, pod, request));
    if (won === undefined) continue;
    count(claims, request, 'Warm');
    // A holder of an earlier epoch that did not notice its end may have claimed between the list and the patch.
    const kept = request.epoch > 1 ? ((await ownPod(claims, request)) ?? won) : won;
    return claimed(claims, kept, request);
  }
  return {
    kind: 'Waiting',
    message: `Other runs were faster ${MAX_ROUNDS} times in a row at SandboxPool ${whereOf(request)}`,
  };
}

/** The pod in which the session's work directory is; what the run owns already comes first. */
async function keptPod<T extends KubeObject>(
  claims: Claims<T>,
  request: SandboxRequest,
): Promise<T | undefined> {
  if (request.savedBy === undefined || claims.line.waits(request)) return undefined;
  const own = await ownPod(claims, request);
  if (own !== undefined) return own;
  // A pool that is found open hands out nothing at all.
  if (isOpen(await claims.supply.pool(request.pool))) return undefined;
  const back = await reclaim(claims, request);
  if (back !== undefined) count(claims, request, 'Reclaimed');
  return back;
}

function count<T extends KubeObject>(
  { metrics, line, clock }: Claims<T>,
  request: SandboxRequest,
  how: Parameters<ClaimMetrics['claimed']>[1],
): void {
  metrics?.claimed(request.pool, how, waitedMs(line, clock, request) / 1000);
}

/** How long it waits in this line, or since an earlier process saw it wait. */
function waitedMs(line: WaitingLine, clock: Clock, request: SandboxRequest): number {
  const { waitingSince } = request;
  const before = waitingSince === undefined ? 0 : clock.now().getTime() - waitingSince.getTime();
  return Math.max(before, line.waits(request) ? line.wait(request) : 0);
}

/** The run's pod, with this holder's epoch on it; what it owns but cannot use is deleted. */
async function ownPod<T extends KubeObject>(
  claims: Claims<T>,
  request: SandboxRequest,
): Promise<T | undefined> {
  const { what, kube, supply } = claims;
  const pods = await supply.owned(request.runUid, request.pool.namespace);
  const own = newestUsable(what, pods);
  for (const pod of pods)
    if (pod !== own && !(own === undefined && claims.onEmpty.keeps(pod, request)))
      await deletePod(claims, pod);
  if (own !== undefined && claims.onEmpty.isMaking(request.runUid)) count(claims, request, 'Created');
  if (own === undefined || epochOf(own) === request.epoch) return own;
  if (epochOf(own) > request.epoch) {
    throw new Error(
      `${what.kind.kind} ${own.metadata.name} belongs to epoch ${epochOf(own)} of run ${request.runName}: epoch ${request.epoch} is over`,
    );
  }
  try {
    return await kube.patch(what.kind, refOf(own), adoptionPatch(own, request));
  } catch (error) {
    // The kubelet wrote its status in between, or the pod went: the next list tells which.
    if (isKubeError(error, 'Conflict', 'NotFound')) return ownPod(claims, request);
    throw error;
  }
}

/** More than one only after two holders claimed at once: the newer one's counts. */
const newestUsable = <T extends KubeObject>(what: Claimable<T>, pods: readonly T[]): T | undefined =>
  pods.filter((pod) => isReady(what, pod)).toSorted((a, b) => epochOf(b) - epochOf(a))[0];

/** Undefined when the pod was taken, changed or went: proof that the view was old, never a reason to force it. */
async function tryClaim<T extends KubeObject>(
  { what, kube, clock, beingPatched }: Claims<T>,
  pod: T,
  request: SandboxRequest,
): Promise<T | undefined> {
  beingPatched.add(uidOf(pod));
  try {
    // Without the caller's signal: a patch given up half-way would leave it unknown whether the pod is claimed.
    return await kube.patch(what.kind, refOf(pod), claimPatch(pod, request, clock.now()));
  } catch (error) {
    if (isKubeError(error, 'Conflict', 'NotFound')) return undefined;
    throw error;
  } finally {
    beingPatched.delete(uidOf(pod));
  }
}

async function notFree<T extends KubeObject>(
  claims: Claims<T>,
  request: SandboxRequest,
  ahead: number,
): Promise<ClaimResult> {
  const { what, supply, line, clock, pullPatienceMs = PULL_PATIENCE_MS } = claims;
  line.wait(request);
  const [pool, objects] = await Promise.all([supply.pool(request.pool), supply.standby(request.pool)]);
  const refusal = refuse(
    { what, where: whereOf(request), pool, objects },
    { ahead, waitedMs: waitedMs(line, clock, request) },
    { now: clock.now(), pullPatienceMs },
  );
  if (refusal.kind === 'Unavailable') {
    line.leave(request.runUid);
    return refusal;
  }
  if (pool === undefined || !pool.spec.claim.createOnEmpty || isOpen(pool)) return refusal;
  const made = await claims.onEmpty.make(pool, request);
  return made === undefined ? refusal : { kind: 'Waiting', message: `${refusal.message}; ${made}` };
}

async function claimed<T extends KubeObject>(
  claims: Claims<T>,
  pod: T,
  request: SandboxRequest,
): Promise<ClaimResult> {
  // One stood by before the one that was being made was ready.
  if (claims.onEmpty.isMaking(request.runUid)) await discardOthers(claims, pod, request);
  claims.onEmpty.forget(request.runUid);
  claims.line.leave(request.runUid);
  const sandbox = opened(claims, pod, request.epoch > 1);
  return wasReclaimed(pod, request)
    ? { kind: 'Claimed', sandbox, reclaimed: true }
    : { kind: 'Claimed', sandbox };
}

async function discardOthers<T extends KubeObject>(
  claims: Claims<T>,
  kept: T,
  { runUid, pool }: SandboxRequest,
): Promise<void> {
  for (const pod of await claims.supply.owned(runUid, pool.namespace))
    if (uidOf(pod) !== uidOf(kept)) await deletePod(claims, pod);
}

function opened<T extends KubeObject>(claims: Claims<T>, object: T, inherited: boolean): Sandbox {
  return claims.open({
    ...{ object, inherited },
    ...refOf(object),
    remove: () => deletePod(claims, object),
    linger: (sessionId) => linger(claims, object, sessionId),
  });
}

/** For a caller that has the sandbox only: whose it is stands on its object. */
async function linger<T extends KubeObject>(claims: Claims<T>, object: T, sessionId: string): Promise<void> {
  const { namespace } = refOf(object);
  const { labels, annotations } = object.metadata;
  const runUid = labels?.[LABELS.run] ?? '';
  const runNamespace = annotations?.[ANNOTATIONS.runName]?.split('/')[0] ?? '';
  const kept = await letLinger(claims, () => claims.supply.owned(runUid, namespace), {
    ...{ runUid, runNamespace, sessionId, namespace },
  });
  if (kept.kind === 'NotKept') await deletePod(claims, object);
}

async function deletePod<T extends KubeObject>({ what, kube }: Claims<T>, pod: T): Promise<void> {
  if (pod.metadata.deletionTimestamp !== undefined) return;
  try {
    await kube.delete(what.kind, refOf(pod), { uid: uidOf(pod) });
  } catch (error) {
    // Another pod has the name already: the one meant is gone.
    if (!isKubeError(error, 'Conflict')) throw error;
  }
}

const uidOf = (pod: KubeObject) => pod.metadata.uid ?? '';
const refOf = ({ metadata }: KubeObject) => ({
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
});
const whereOf = ({ pool }: SandboxRequest) => `${pool.namespace}/${pool.name}`;

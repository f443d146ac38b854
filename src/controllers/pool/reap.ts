import { AGENT_RUNS } from '../../crds/agent-run.ts';
import { AGENT_SESSIONS } from '../../crds/agent-session.ts';
import { labelSelector, labelValue } from '../../crds/labels.ts';
import { lingeringSession, lingers, reapTime } from '../../crds/lingering.ts';
import { ANNOTATIONS, type KubeObject, LABELS, MANAGED_BY, type ResourceKind } from '../../crds/meta.ts';
import { isTerminal } from '../../crds/reasons.ts';
import { SANDBOX_POOLS, type SandboxPool } from '../../crds/sandbox-pool.ts';
import { type Clock, sleep, systemClock } from '../../kube/clock.ts';
import { isKubeError } from '../../kube/errors.ts';
import { POD } from '../../kube/kinds.ts';
import { VIRTUAL_MACHINE_INSTANCE } from '../../kube/kubevirt/kinds.ts';
import { errorFields, type Logger, silentLogger } from '../../kube/log.ts';
import type { EventRecorder, KubeClient } from '../../kube/port.ts';
import { evictionMessage, overMax } from './lingering.ts';
import type { PoolMetrics } from './metrics.ts';
import { type OwnerState, type ReapReason, reapReason } from './reap-reason.ts';

export interface ReaperOptions {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  /** Where sandboxes run; also of pools that exist no more. */
  readonly namespaces: readonly string[];
  readonly metrics?: PoolMetrics;
  /** Default 15 s. */
  readonly intervalMs?: number;
  readonly clock?: Clock;
  readonly logger?: Logger;
}

/** Reaps until the signal is aborted. Never rejects. */
export async function runReaper(options: ReaperOptions, signal: AbortSignal): Promise<void> {
  const { clock = systemClock, logger = silentLogger, intervalMs = 15_000 } = options;
  while (!signal.aborted) {
    try {
      await reapOnce(options, signal);
    } catch (error) {
      if (!signal.aborted) logger.warn(errorFields(error), 'sandboxes not reaped; trying again');
    }
    await sleep(clock, intervalMs, signal);
  }
}

/**
 * One pass: the claimed sandboxes first, then those that linger, the oldest first, until none is over and no pool has
 * more than it keeps. Everything that leads to a deletion is read from the API server just before,
 * and the deletion names the uid and resourceVersion: one that changed meanwhile stays, such as a sandbox that a
 * reply has just taken. Returns the names of what was deleted. Throws KubeError.
 */
export async function reapOnce(options: ReaperOptions, signal?: AbortSignal): Promise<readonly string[]> {
  const { kube, clock = systemClock } = options;
  const reaped: string[] = [];
  for (const namespace of options.namespaces) {
    const pools = await kube.list(SANDBOX_POOLS, { namespace }, signal && { signal });
    for (const kind of SANDBOX_KINDS) {
      const sandboxes = await activeSandboxes(kube, kind, namespace, signal);
      const claimed = sandboxes.filter((sandbox) => !lingers(sandbox));
      const lingering = sandboxes.filter(lingers).toSorted((a, b) => reapTime(a) - reapTime(b));
      const left: KubeObject[] = [];
      for (const sandbox of [...claimed, ...lingering]) {
        const reason = reapReason(sandbox, await ownerStateOf(kube, sandbox), clock.now());
        if (reason === undefined) left.push(sandbox);
        else if (await reap(options, kind, sandbox, reason)) reaped.push(sandbox.metadata.name ?? '');
      }
      for (const { sandbox, reason } of evictions(left, pools.items))
        if (await reap(options, kind, sandbox, reason)) reaped.push(sandbox.metadata.name ?? '');
    }
  }
  return reaped;
}

/** A pool that is gone keeps nothing. */
function evictions(sandboxes: readonly KubeObject[], pools: readonly SandboxPool[]) {
  const maxOf = new Map(
    pools.map(({ metadata, spec }) => [labelValue(metadata.name ?? ''), spec.linger.max]),
  );
  const byPool = Map.groupBy(sandboxes, ({ metadata }) => metadata.labels?.[LABELS.pool] ?? '');
  return [...byPool].flatMap(([pool, of]) => {
    const max = maxOf.get(pool) ?? 0;
    const reason = { reason: 'SandboxEvicted', message: evictionMessage(max) } as const;
    return overMax(of, max).map((sandbox) => ({ sandbox, reason }));
  });
}

/** False when it had gone or changed. */
async function reap(
  { kube, events, metrics, logger = silentLogger }: ReaperOptions,
  kind: ResourceKind,
  sandbox: KubeObject,
  reason: ReapReason,
): Promise<boolean> {
  if (!(await deleted(kube, kind, sandbox))) return false;
  const { name = '', namespace = '', labels } = sandbox.metadata;
  logger.info(
    { kind: kind.kind, sandbox: `${namespace}/${name}`, reason: reason.reason },
    `sandbox reaped: ${reason.message}`,
  );
  events.record(sandbox, 'Normal', reason.reason, reason.message);
  metrics?.reaped({ namespace, name: labels?.[LABELS.pool] ?? '' }, reason.reason);
  return true;
}

/** What a sandbox can be in the cluster. */
const SANDBOX_KINDS: readonly ResourceKind[] = [POD, VIRTUAL_MACHINE_INSTANCE];

async function activeSandboxes(
  kube: KubeClient,
  kind: ResourceKind,
  namespace: string,
  signal: AbortSignal | undefined,
): Promise<readonly KubeObject[]> {
  // Another label too, so that a role of somebody else's is never taken for ours. A machine that a run at the command
  // line has made belongs to no pool, and has no deadline of its own as such a pod has.
  const ours = kind === POD ? LABELS.pool : labelSelector({ [LABELS.managedBy]: MANAGED_BY });
  const selector = `${labelSelector({ [LABELS.role]: 'active' })},${ours}`;
  try {
    const { items } = await kube.list(kind, { namespace, labelSelector: selector }, signal && { signal });
    return items;
  } catch (error) {
    // A cluster without KubeVirt has no machines, and a Role may leave them out.
    if (kind === VIRTUAL_MACHINE_INSTANCE && isKubeError(error, 'NotFound', 'Forbidden')) return [];
    throw error;
  }
}

async function ownerStateOf(kube: KubeClient, sandbox: KubeObject): Promise<OwnerState> {
  try {
    return await (lingers(sandbox) ? sessionStateOf(kube, sandbox) : runStateOf(kube, sandbox));
  } catch (error) {
    if (isKubeError(error)) return 'Unknown';
    throw error;
  }
}

/** A list, since a GET's 404 also means that the API server does not serve the kind (yet). */
async function sessionStateOf(kube: KubeClient, sandbox: KubeObject): Promise<OwnerState> {
  const { namespace, name } = lingeringSession(sandbox) ?? {};
  // Of a run at the command line: no object stands behind its session.
  if (!namespace || !name) return 'Unknown';
  const { items } = await kube.list(AGENT_SESSIONS, { namespace, fieldSelector: `metadata.name=${name}` });
  const [session] = items;
  return session === undefined || session.metadata.deletionTimestamp !== undefined ? 'Gone' : 'Live';
}

async function runStateOf(kube: KubeClient, pod: KubeObject): Promise<OwnerState> {
  const [namespace, name, ...rest] = pod.metadata.annotations?.[ANNOTATIONS.runName]?.split('/') ?? [];
  if (!namespace || !name || rest.length > 0) return 'Unknown';
  // A list, as above.
  const { items } = await kube.list(AGENT_RUNS, { namespace, fieldSelector: `metadata.name=${name}` });
  const run = items.find(({ metadata }) => metadata.uid === pod.metadata.labels?.[LABELS.run]);
  if (run === undefined) return 'Gone';
  return isTerminal(run.status?.phase) ? 'Ended' : 'Live';
}

/** False when the pod had gone or changed. */
async function deleted(kube: KubeClient, kind: ResourceKind, { metadata }: KubeObject): Promise<boolean> {
  const { name = '', namespace = '', uid = '', resourceVersion = '' } = metadata;
  try {
    return await kube.delete(kind, { namespace, name }, { uid, resourceVersion });
  } catch (error) {
    if (isKubeError(error, 'Conflict')) return false;
    throw error;
  }
}

import { AGENT_RUNS } from '../../crds/agent-run.ts';
import { labelSelector } from '../../crds/labels.ts';
import { ANNOTATIONS, type KubeObject, LABELS, type ResourceKind } from '../../crds/meta.ts';
import { isTerminal } from '../../crds/reasons.ts';
import { type Clock, sleep, systemClock } from '../../kube/clock.ts';
import { isKubeError } from '../../kube/errors.ts';
import { POD } from '../../kube/kinds.ts';
import { VIRTUAL_MACHINE_INSTANCE } from '../../kube/kubevirt/kinds.ts';
import { errorFields, type Logger, silentLogger } from '../../kube/log.ts';
import type { EventRecorder, KubeClient } from '../../kube/port.ts';
import { type RunState, reapReason } from './reap-reason.ts';

export interface ReaperOptions {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  /** Where sandboxes run; also of pools that exist no more. */
  readonly namespaces: readonly string[];
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
 * One pass over the claimed pods. Everything that leads to a deletion is read from the API server just before,
 * and the deletion names the pod's uid and resourceVersion: a pod that changed meanwhile stays.
 * Returns the names of the pods that were deleted. Throws KubeError.
 */
export async function reapOnce(options: ReaperOptions, signal?: AbortSignal): Promise<readonly string[]> {
  const { kube, events, clock = systemClock, logger = silentLogger } = options;
  const reaped: string[] = [];
  for (const namespace of options.namespaces) {
    for (const kind of SANDBOX_KINDS) {
      for (const sandbox of await claimedSandboxes(kube, kind, namespace, signal)) {
        const reason = reapReason(sandbox, await runStateOf(kube, sandbox), clock.now());
        if (reason === undefined || !(await deleted(kube, kind, sandbox))) continue;
        const { name = '' } = sandbox.metadata;
        reaped.push(name);
        logger.info(
          { kind: kind.kind, sandbox: `${namespace}/${name}`, reason: reason.reason },
          `sandbox reaped: ${reason.message}`,
        );
        events.record(sandbox, 'Normal', reason.reason, reason.message);
      }
    }
  }
  return reaped;
}

/** What a sandbox can be in the cluster. */
const SANDBOX_KINDS: readonly ResourceKind[] = [POD, VIRTUAL_MACHINE_INSTANCE];

async function claimedSandboxes(
  kube: KubeClient,
  kind: ResourceKind,
  namespace: string,
  signal: AbortSignal | undefined,
): Promise<readonly KubeObject[]> {
  // The pool's label too, so that a role of somebody else's is never taken for ours.
  const selector = `${labelSelector({ [LABELS.role]: 'active' })},${LABELS.pool}`;
  try {
    const { items } = await kube.list(kind, { namespace, labelSelector: selector }, signal && { signal });
    return items;
  } catch (error) {
    // A cluster without KubeVirt has no machines, and a Role may leave them out.
    if (kind === VIRTUAL_MACHINE_INSTANCE && isKubeError(error, 'NotFound', 'Forbidden')) return [];
    throw error;
  }
}

async function runStateOf(kube: KubeClient, pod: KubeObject): Promise<RunState> {
  const [namespace, name, ...rest] = pod.metadata.annotations?.[ANNOTATIONS.runName]?.split('/') ?? [];
  if (!namespace || !name || rest.length > 0) return 'Unknown';
  try {
    // A list, since a GET's 404 also means that the API server does not serve the kind (yet).
    const { items } = await kube.list(AGENT_RUNS, { namespace, fieldSelector: `metadata.name=${name}` });
    const run = items.find(({ metadata }) => metadata.uid === pod.metadata.labels?.[LABELS.run]);
    if (run === undefined) return 'Gone';
    return isTerminal(run.status?.phase) ? 'Ended' : 'Live';
  } catch (error) {
    if (isKubeError(error)) return 'Unknown';
    throw error;
  }
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

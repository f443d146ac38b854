import { isDeepStrictEqual } from 'node:util';
import { API_VERSION } from '../../crds/meta.ts';
import { SANDBOX_POOLS, type SandboxPool, type SandboxPoolStatus } from '../../crds/sandbox-pool.ts';
import { type Clock, systemClock } from '../../kube/clock.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { EventRecorder, KubeClient, ObjectRef } from '../../kube/port.ts';
import { conditionOf } from '../conditions.ts';
import { act, FIELD_MANAGER } from './act.ts';
import { decide, type PoolDecision } from './decide.ts';
import { actOnMachines } from './machines/act.ts';
import { decideMachines, type MachinesDecision } from './machines/decide.ts';
import type { MachinePoolSettings, OperatorPods } from './machines/manifests.ts';
import { type MachinesObserveOptions, observeMachines } from './machines/observe.ts';
import type { PoolMetrics } from './metrics.ts';
import { type Observed, type ObserveOptions, observe } from './observe.ts';

export interface PoolReconcilerOptions extends ObserveOptions {
  readonly events: EventRecorder;
  readonly metrics?: PoolMetrics;
  /** Who may speak SSH to machines. Left out: pools of machines are not served. */
  readonly operator?: OperatorPods;
  readonly clock?: Clock;
}

/** Makes one SandboxPool's Deployment and NetworkPolicy right and its status true. Throws KubeError. */
export function poolReconciler(options: PoolReconcilerOptions): (ref: ObjectRef) => Promise<ReconcileResult> {
  const { kube, events, metrics, clock = systemClock } = options;
  // A cache may show a pod that was deleted a moment ago as it was: that is no second failure.
  const deleted = new Set<string>();
  const actors = { kube, events, ...(metrics === undefined ? {} : { metrics }) };

  async function onPods(seen: Observed): Promise<PoolDecision> {
    const observed = { ...seen, pods: seen.pods.filter(({ metadata }) => !deleted.has(metadata.uid ?? '')) };
    const decision = decide(observed, clock.now());
    for (const action of decision.actions) {
      const done = await act(actors, observed.pool, action);
      if (done && action.kind === 'DeletePod') remember(deleted, action.pod.metadata.uid ?? '');
    }
    return decision;
  }

  /** Undefined for a pool of pods, and where machines are not served. */
  function machinesOf({ pool }: Observed): Promise<MachinesDecision> | undefined {
    const { operator } = options;
    const { virtualMachineInstance } = pool.spec;
    if (virtualMachineInstance === undefined || operator === undefined) return undefined;
    return onMachines({ ...options, operator }, pool, virtualMachineInstance);
  }

  async function onMachines(
    from: MachinesObserveOptions,
    pool: SandboxPool,
    settings: MachinePoolSettings,
  ): Promise<MachinesDecision> {
    const decision = decideMachines(await observeMachines(from, pool, settings), clock.now());
    for (const action of decision.actions) await actOnMachines(actors, pool, action);
    return decision;
  }

  return async (ref) => {
    const seen = await observe(options, ref);
    if (seen === undefined) {
      metrics?.counted(ref, undefined);
      return {};
    }
    const { pool } = seen;
    const { status, requeueAfterMs } = await (machinesOf(seen) ?? onPods(seen));
    tell(events, pool, status);
    metrics?.counted(ref, status);
    await writeStatus(kube, pool, status);
    return requeueAfterMs === undefined ? {} : { requeueAfterMs };
  };
}

/** More than a cache is ever behind. */
const REMEMBERED = 1_000;

function remember(uids: Set<string>, uid: string): void {
  uids.add(uid);
  for (const oldest of uids) {
    if (uids.size <= REMEMBERED) return;
    uids.delete(oldest);
  }
}

/** An Event when sandboxes can be claimed again, or can no longer, and whenever the reason for that changes. */
function tell(events: EventRecorder, pool: SandboxPool, status: SandboxPoolStatus): void {
  const before = conditionOf(pool.status?.conditions, 'Ready');
  const after = conditionOf(status.conditions, 'Ready');
  if (after === undefined || (before?.status === after.status && before.reason === after.reason)) return;
  if (after.status === 'True') events.record(pool, 'Normal', 'PoolReady', after.message);
  // The last one was claimed, or none was there yet: that is no news.
  else if (after.reason !== 'Filling')
    events.record(pool, 'Warning', 'PoolNotReady', `${after.reason}: ${after.message}`);
}

async function writeStatus(kube: KubeClient, pool: SandboxPool, status: SandboxPoolStatus): Promise<void> {
  if (isDeepStrictEqual(pool.status ?? {}, status)) return;
  const { name = '', namespace = '' } = pool.metadata;
  const body = { apiVersion: API_VERSION, kind: 'SandboxPool', metadata: { name, namespace }, status };
  await kube.patch(
    SANDBOX_POOLS,
    { namespace, name },
    { type: 'apply', body, fieldManager: FIELD_MANAGER, force: true },
    { subresource: 'status' },
  );
}

import { isDeepStrictEqual } from 'node:util';
import { API_VERSION } from '../../crds/meta.ts';
import { SANDBOX_POOLS, type SandboxPool, type SandboxPoolStatus } from '../../crds/sandbox-pool.ts';
import { type Clock, systemClock } from '../../kube/clock.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { EventRecorder, KubeClient, ObjectRef } from '../../kube/port.ts';
import { act, FIELD_MANAGER } from './act.ts';
import { decide } from './decide.ts';
import { type ObserveOptions, observe } from './observe.ts';

export interface PoolReconcilerOptions extends ObserveOptions {
  readonly events: EventRecorder;
  readonly clock?: Clock;
}

/** Makes one SandboxPool's Deployment and NetworkPolicy right and its status true. Throws KubeError. */
export function poolReconciler(options: PoolReconcilerOptions): (ref: ObjectRef) => Promise<ReconcileResult> {
  const { kube, events, clock = systemClock } = options;
  return async (ref) => {
    const observed = await observe(options, ref);
    if (observed === undefined) return {};
    const { actions, status, requeueAfterMs } = decide(observed, clock.now());
    for (const action of actions) await act({ kube, events }, action);
    await writeStatus(kube, observed.pool, status);
    return requeueAfterMs === undefined ? {} : { requeueAfterMs };
  };
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

import { labelValue } from '../../crds/labels.ts';
import { LABELS } from '../../crds/meta.ts';
import type { SandboxPool } from '../../crds/sandbox-pool.ts';
import { keyOf, refOfKey } from '../../kube/cache.ts';
import { type Clock, systemClock } from '../../kube/clock.ts';
import { type Controller, createController, from, type Source } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Deployment, NetworkPolicy, Pod } from '../../kube/kinds.ts';
import type { Logger } from '../../kube/log.ts';
import type { EgressWatch } from './egress/watch.ts';
import { type PoolReconcilerOptions, poolReconciler } from './reconcile.ts';

export interface PoolControllerOptions extends Omit<PoolReconcilerOptions, 'cachedPods' | 'egressReport'> {
  readonly pools: Informer<SandboxPool>;
  /** Of the pools' namespace; may be restricted to pods with the pool label. */
  readonly pods: Informer<Pod>;
  readonly deployments?: Informer<Deployment>;
  readonly networkPolicies?: Informer<NetworkPolicy>;
  /** Left out: only pools without probe get claimable sandboxes. Whoever made it runs it. */
  readonly egress?: EgressWatch;
  readonly logger?: Logger;
}

/** The SandboxPool controller. The informers are started and stopped by whoever made them. */
export function createPoolController(options: PoolControllerOptions): Controller {
  const { pools, pods, deployments, networkPolicies, egress, logger, clock = systemClock } = options;
  const poolsOf = (object: Pod | Deployment | NetworkPolicy): readonly string[] => {
    const label = object.metadata.labels?.[LABELS.pool];
    if (label === undefined) return [];
    const isItsPool = ({ metadata }: SandboxPool) =>
      metadata.namespace === object.metadata.namespace && labelValue(metadata.name ?? '') === label;
    return pools.list(isItsPool).map(keyOf);
  };
  const reconcile = poolReconciler({
    ...options,
    cachedPods: (namespace) =>
      pods.hasSynced ? pods.list(({ metadata }) => metadata.namespace === namespace) : undefined,
    ...(egress === undefined ? {} : { egressReport: (pool: SandboxPool) => egress.report(pool) }),
  });
  return createController({
    name: 'sandboxpool',
    sources: [
      from(pools),
      calm(
        from(pods, ({ object }) => poolsOf(object)),
        clock,
      ),
      ...(deployments === undefined
        ? []
        : [
            calm(
              from(deployments, ({ object }) => poolsOf(object)),
              clock,
            ),
          ]),
      ...(egress === undefined ? [] : [egress.source]),
      ...(networkPolicies === undefined ? [] : [from(networkPolicies, ({ object }) => poolsOf(object))]),
    ],
    reconcile: (key) => reconcile(refOfKey(key)),
    clock,
    ...(logger === undefined ? {} : { logger }),
  });
}

/** A pod changes some five times on its way to Ready: its pool is looked at once for what comes within this time. */
const CALM_MS = 100;

function calm(source: Source, clock: Clock): Source {
  return {
    subscribe(enqueue) {
      const pending = new Map<string, () => void>();
      const end = source.subscribe((key) => {
        if (pending.has(key)) return;
        const tell = () => {
          pending.delete(key);
          enqueue(key);
        };
        pending.set(key, clock.after(CALM_MS, tell));
      });
      return () => {
        end();
        for (const cancel of pending.values()) cancel();
      };
    },
    waitForSync: (signal) => source.waitForSync(signal),
  };
}

import type { SandboxPoolSpec } from '../../crds/sandbox-pool.ts';
import { type Clock, systemClock } from '../../kube/clock.ts';
import { isKubeError } from '../../kube/errors.ts';
import type { SandboxProvider, SandboxRequest } from '../port.ts';

export interface PoolsByBackend {
  readonly pods: SandboxProvider;
  readonly machines: SandboxProvider;
  /** `spec.backend`; undefined when there is no such pool. */
  readonly backendOf: (pool: SandboxRequest['pool']) => Promise<SandboxPoolSpec['backend'] | undefined>;
  readonly clock?: Clock;
}

/** How long a cluster without KubeVirt is not asked for machines again. */
const ABSENT_MS = 60_000;

/**
 * Pools of both backends behind one provider. A claim knows its pool; whatever else is asked for a run is looked for
 * among both, since its pool may be gone by then.
 */
export function poolsByBackend({
  pods,
  machines,
  backendOf,
  clock = systemClock,
}: PoolsByBackend): SandboxProvider {
  let absentUntil = -1;

  /** `none` where KubeVirt is not installed, or the Role leaves its machines out. */
  async function ofMachines<T>(ask: () => Promise<T>, none: T): Promise<T> {
    if (clock.monotonicMs() < absentUntil) return none;
    try {
      return await ask();
    } catch (error) {
      if (!isKubeError(error, 'NotFound', 'Forbidden')) throw error;
      absentUntil = clock.monotonicMs() + ABSENT_MS;
      return none;
    }
  }

  return {
    async claim(request, signal) {
      const backend = await backendOf(request.pool);
      return (backend === 'VirtualMachineInstance' ? machines : pods).claim(request, signal);
    },
    async find(runUid, namespace) {
      const pod = await pods.find(runUid, namespace);
      return pod ?? (await ofMachines(() => machines.find(runUid, namespace), undefined));
    },
    async linger(request) {
      const { runUid, namespace } = request;
      const machine = await ofMachines(() => machines.find(runUid, namespace), undefined);
      return (machine === undefined ? pods : machines).linger(request);
    },
    async release(runUid, namespace) {
      const none = await Promise.all([
        pods.release(runUid, namespace),
        ofMachines(() => machines.release(runUid, namespace), true),
      ]);
      return none.every(Boolean);
    },
  };
}

import type { KubeObject, ResourceKind } from '../../crds/meta.ts';
import type { SandboxPoolSpec } from '../../crds/sandbox-pool.ts';
import { POD, type Pod } from '../../kube/kinds.ts';
import { isUsable, type PodProblem, podProblem } from '../../kube/pod-state.ts';

/** What one backend's pools are made of, and what its objects say of themselves. */
export interface Claimable<T extends KubeObject> {
  readonly kind: ResourceKind<T>;
  readonly backend: SandboxPoolSpec['backend'];
  /** Whether commands can be run in it, as far as its object says. */
  isUsable(object: T): boolean;
  /** What keeps it from becoming usable; undefined while it is merely starting, running or going. */
  problem(object: T): PodProblem | undefined;
}

export const PODS: Claimable<Pod> = { kind: POD, backend: 'Pod', isUsable, problem: podProblem };

import type { Pod } from './kinds.ts';

/**
 * Whether commands can be run in the pod, as far as its object says: Running, Ready, every container ready, not
 * being deleted, not about to be disrupted. A node that is lost shows as Ready False, set by the node controller.
 */
export function isUsable(pod: Pod): boolean {
  const { status } = pod;
  return (
    pod.metadata.deletionTimestamp === undefined &&
    status?.phase === 'Running' &&
    conditionIs(pod, 'Ready', 'True') &&
    !conditionIs(pod, 'DisruptionTarget', 'True') &&
    status.containerStatuses !== undefined &&
    status.containerStatuses.length > 0 &&
    status.containerStatuses.every(({ ready, state }) => ready && state?.running !== undefined)
  );
}

export interface PodProblem {
  /** Kubernetes' word: ImagePullBackOff, CrashLoopBackOff, Evicted, OOMKilled, Unschedulable… */
  readonly reason: string;
  readonly message: string;
  /**
   * Pull: waiting may help (a registry that comes back) but usually does not. Permanent: waiting cannot help.
   * Other: Kubernetes tries again by itself.
   */
  readonly kind: 'Pull' | 'Permanent' | 'Other';
}

/** What keeps the pod from becoming usable, undefined while it is merely starting, running or going. */
export function podProblem(pod: Pod): PodProblem | undefined {
  const { status } = pod;
  if (status === undefined || pod.metadata.deletionTimestamp !== undefined) return undefined;
  if (status.phase === 'Failed' || status.phase === 'Succeeded') {
    const ended = status.containerStatuses?.find(({ state }) => state?.terminated)?.state?.terminated;
    const reason = status.reason ?? ended?.reason ?? status.phase;
    return {
      reason,
      message: status.message ?? ended?.message ?? `the pod is ${status.phase}`,
      kind: 'Other',
    };
  }
  for (const { name, state, lastState } of status.containerStatuses ?? []) {
    const waiting = state?.waiting;
    if (waiting?.reason !== undefined && !STARTING.has(waiting.reason)) {
      const last = lastState?.terminated;
      // A crash loop does not say what made it crash.
      const why = last === undefined ? '' : ` (it ended with ${last.reason ?? 'Error'}, ${last.exitCode})`;
      const message = `${waiting.message ?? `container ${name} waits`}${why}`;
      return { reason: waiting.reason, message, kind: WAITING_KINDS[waiting.reason] ?? 'Other' };
    }
    if (state?.terminated !== undefined) {
      const { reason = 'Terminated', message, exitCode } = state.terminated;
      return { reason, message: message ?? `container ${name} ended with ${exitCode}`, kind: 'Other' };
    }
  }
  const doomed = status.conditions?.find(
    ({ type, status: is }) => type === 'DisruptionTarget' && is === 'True',
  );
  if (doomed !== undefined) {
    const { reason = 'DisruptionTarget', message = 'the pod is about to be evicted' } = doomed;
    return { reason, message, kind: 'Other' };
  }
  // Containers whose last word was "ready" in a pod that is not: the node controller says that the node is lost.
  const ready =
    status.containerStatuses?.every((container) => container.ready && container.state?.running) ?? false;
  if (status.phase === 'Running' && ready && conditionIs(pod, 'Ready', 'False')) {
    const node = pod.spec.nodeName ?? 'its node';
    return { reason: 'NodeNotReady', message: `node ${node} does not answer`, kind: 'Other' };
  }
  const scheduled = status.conditions?.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status !== 'False') return undefined;
  return {
    reason: scheduled.reason ?? 'Unschedulable',
    message: scheduled.message ?? 'no node takes the pod',
    kind: 'Other',
  };
}

/** Reasons of a container that waits because all is well. */
const STARTING: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing']);

const WAITING_KINDS: Readonly<Record<string, PodProblem['kind']>> = {
  ErrImagePull: 'Pull',
  ImagePullBackOff: 'Pull',
  RegistryUnavailable: 'Pull',
  ErrImageNeverPull: 'Permanent',
  InvalidImageName: 'Permanent',
  ImageInspectError: 'Permanent',
  CreateContainerConfigError: 'Permanent',
};

function conditionIs(pod: Pod, type: string, status: 'True' | 'False'): boolean {
  return (
    pod.status?.conditions?.some((condition) => condition.type === type && condition.status === status) ??
    false
  );
}

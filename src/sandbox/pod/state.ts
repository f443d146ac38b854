import type { ContainerStatus, Pod } from '../../kube/kinds.ts';

/** What can be expected of a pod's container. */
export type PodOutlook =
  | { readonly kind: 'Running' }
  /** May still become usable. `failing`: something that seldom mends itself, an image that is not there. */
  | { readonly kind: 'Starting'; readonly why: string; readonly failing: boolean }
  /** Can never become usable. */
  | { readonly kind: 'Unusable'; readonly why: string }
  /** Was, and is no more. */
  | { readonly kind: 'Gone'; readonly why: string };

/** Never mend without a change of the pod. */
const HOPELESS = new Set(['InvalidImageName', 'ErrImageNeverPull', 'CreateContainerConfigError']);
/** May mend: a registry that was away for a moment. */
const FAILING = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'RegistryUnavailable',
  'CreateContainerError',
  'RunContainerError',
  'CrashLoopBackOff',
]);

/** `uid`: the pod that is meant; another one of the same name is not it. */
export function outlook(pod: Pod | undefined, container: string, uid: string | undefined): PodOutlook {
  if (pod === undefined) return { kind: 'Gone', why: 'the pod does not exist any more' };
  if (uid !== undefined && pod.metadata.uid !== uid)
    return { kind: 'Gone', why: 'another pod has taken its name' };
  if (pod.metadata.deletionTimestamp !== undefined) return { kind: 'Gone', why: 'the pod is being deleted' };
  const { phase, reason, message } = pod.status ?? {};
  if (phase === 'Failed' || phase === 'Succeeded') {
    return { kind: 'Gone', why: `the pod has ended: ${words(phase, reason, message)}` };
  }
  const status = pod.status?.containerStatuses?.find(({ name }) => name === container);
  return status === undefined ? notPlaced(pod, container) : containerOutlook(status);
}

function notPlaced(pod: Pod, container: string): PodOutlook {
  if (!pod.spec.containers.some(({ name }) => name === container)) {
    return { kind: 'Unusable', why: `the pod has no container "${container}"` };
  }
  const unscheduled = pod.status?.conditions?.find(
    ({ type, status }) => type === 'PodScheduled' && status === 'False',
  );
  const why = unscheduled === undefined ? 'not started yet' : words(unscheduled.reason, unscheduled.message);
  return { kind: 'Starting', why, failing: false };
}

function containerOutlook({ state, restartCount }: ContainerStatus): PodOutlook {
  if (state?.running !== undefined) return { kind: 'Running' };
  if (state?.terminated !== undefined) {
    const { reason, exitCode, message } = state.terminated;
    return {
      kind: 'Gone',
      why: `the container has ended: ${words(reason, `exit code ${exitCode}`, message)}`,
    };
  }
  const { reason = 'waiting', message } = state?.waiting ?? {};
  const why = words(reason, message);
  if (HOPELESS.has(reason)) return { kind: 'Unusable', why };
  return { kind: 'Starting', why, failing: FAILING.has(reason) || restartCount > 0 };
}

function words(...parts: readonly (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined && part !== '').join(', ');
}

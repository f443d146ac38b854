import { duration, parseDuration } from '../../crds/duration.ts';
import { labelValue } from '../../crds/labels.ts';
import { ANNOTATIONS, type KubeObject, LABELS } from '../../crds/meta.ts';
import type { Patch } from '../../kube/port.ts';
import type { LingerRequest, SandboxRequest } from '../port.ts';

/**
 * Makes a standby sandbox the run's own, in one patch: a pod without owner whose labels still match is taken back by
 * its ReplicaSet, one with an owner whose labels do not match is let go and raced for. The resourceVersion makes
 * the API server refuse it (409) when anything has changed since, the uid when it is another pod of that name.
 */
export function claimPatch(pod: KubeObject, request: SandboxRequest, now: Date): Patch {
  const { labels, annotations } = ownership(pod, request, now);
  return {
    type: 'merge',
    body: {
      metadata: {
        ...guard(pod),
        labels,
        // A lingering sandbox that is claimed again lingers no more; that makes it nobody else's.
        annotations: { ...annotations, [ANNOTATIONS.sessionId]: null },
        ownerReferences: null,
      },
    },
  };
}

/** What makes a sandbox a run's own. `sandbox` may say how long any run may keep it. */
export function ownership(
  sandbox: KubeObject,
  request: SandboxRequest,
  now: Date,
): { readonly labels: Record<string, string>; readonly annotations: Record<string, string> } {
  const labels: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.labels)) labels[name] = labelValue(value);
  labels[LABELS.workflow] = labelValue(request.workflow);
  labels[LABELS.role] = 'active';
  labels[LABELS.run] = request.runUid;
  if (request.sessionId !== undefined) labels[LABELS.session] = labelValue(request.sessionId);
  return {
    labels,
    annotations: {
      [ANNOTATIONS.reapBy]: deadline(sandbox, request, now).toISOString(),
      [ANNOTATIONS.epoch]: String(request.epoch),
      [ANNOTATIONS.runName]: `${request.runNamespace}/${request.runName}`,
    },
  };
}

/**
 * Lets go of the run's pod for the session's next run. The run's label goes, so that nothing that is done to the
 * run's sandboxes concerns it any more; `savedBy` ties it to the save of the session that its files are.
 */
export function lingerPatch(pod: KubeObject, { sessionId, runUid }: LingerRequest, until: Date): Patch {
  return {
    type: 'merge',
    body: {
      metadata: {
        ...guard(pod),
        labels: { [LABELS.run]: null, [LABELS.session]: labelValue(sessionId) },
        annotations: {
          [ANNOTATIONS.sessionId]: sessionId,
          [ANNOTATIONS.savedBy]: runUid,
          [ANNOTATIONS.reapBy]: until.toISOString(),
        },
      },
    },
  };
}

/** After a take-over: the new holder's epoch on the pod that the run owns already. The deadline stays absolute. */
export function adoptionPatch(pod: KubeObject, request: SandboxRequest): Patch {
  const annotations = { [ANNOTATIONS.epoch]: String(request.epoch) };
  return { type: 'merge', body: { metadata: { ...guard(pod), annotations } } };
}

/** Epoch of the holder that claimed or adopted the pod last; 0 when it says none. */
export function epochOf(pod: KubeObject): number {
  const epoch = Number(pod.metadata.annotations?.[ANNOTATIONS.epoch]);
  return Number.isSafeInteger(epoch) && epoch >= 0 ? epoch : 0;
}

const guard = ({ metadata: { uid, resourceVersion } }: KubeObject) => ({ uid, resourceVersion });

/** What the run asks for, but no longer than its pool lets any run keep a sandbox. */
function deadline(pod: KubeObject, { reapBy }: SandboxRequest, now: Date): Date {
  const maxActive = pod.metadata.annotations?.[ANNOTATIONS.maxActive];
  if (maxActive === undefined || !duration.safeParse(maxActive).success) return reapBy;
  return new Date(Math.min(reapBy.getTime(), now.getTime() + parseDuration(maxActive)));
}

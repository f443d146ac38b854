import { labelValue } from '../../crds/labels.ts';
import { LABELS, MANAGED_BY } from '../../crds/meta.ts';
import { isolatedPodSpec, NO_TRAFFIC, SANDBOX_NAME } from '../../kube/isolated-pod.ts';
import type { NetworkPolicy, Pod } from '../../kube/kinds.ts';

/** A pod that is one run's own from its beginning, and belongs to no pool. */
export interface OwnPodWish {
  readonly namespace: string;
  readonly name: string;
  readonly image: string;
  readonly runUid: string;
  readonly workflow: string;
  /** The pod ends by itself then, should nobody be left to delete it. */
  readonly activeDeadlineSeconds: number;
}

/** One container of this size; its /tmp counts as ephemeral storage too. */
const RESOURCES = {
  requests: { cpu: '100m', memory: '256Mi', 'ephemeral-storage': '256Mi' },
  limits: { cpu: '1', memory: '1Gi', 'ephemeral-storage': '2Gi' },
} as const;

export function ownPod(wish: OwnPodWish): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: metadataOf(wish),
    spec: {
      ...isolatedPodSpec({
        image: wish.image,
        imagePullPolicy: 'IfNotPresent',
        resources: RESOURCES,
        workspaceLimit: RESOURCES.limits['ephemeral-storage'],
      }),
      restartPolicy: 'Never',
      activeDeadlineSeconds: wish.activeDeadlineSeconds,
    },
  };
}

/** No traffic for the run's pods, whatever else the namespace has. */
export function ownNetworkPolicy(wish: OwnPodWish): NetworkPolicy {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: metadataOf(wish),
    spec: { podSelector: { matchLabels: { [LABELS.run]: wish.runUid } }, ...NO_TRAFFIC },
  };
}

const metadataOf = ({ namespace, name, runUid, workflow }: OwnPodWish) => ({
  namespace,
  name,
  labels: {
    ...SANDBOX_NAME,
    [LABELS.managedBy]: MANAGED_BY,
    [LABELS.run]: runUid,
    [LABELS.workflow]: labelValue(workflow),
  },
});

import { awaitsProof } from '../../../crds/egress.ts';
import { type KubeObject, LABELS, type ResourceKind } from '../../../crds/meta.ts';
import { POD, type Pod } from '../../../kube/kinds.ts';
import { VIRTUAL_MACHINE_INSTANCE, type VirtualMachineInstance } from '../../../kube/kubevirt/kinds.ts';
import { addressOf, isMachineUsable } from '../../../kube/kubevirt/state.ts';
import { isUsable } from '../../../kube/pod-state.ts';

/** A sandbox of a pool as the probe sees it, whatever kind it is of. */
export interface Probeable {
  readonly kind: ResourceKind;
  readonly object: KubeObject;
  /** Its own. */
  readonly addresses: readonly string[];
  /** Of the node that it runs on. */
  readonly nodeAddresses: readonly string[];
  /** Commands can be run in it. */
  readonly usable: boolean;
}

export const probeablePod = (pod: Pod): Probeable => ({
  kind: POD,
  object: pod,
  addresses: listed(pod.status?.podIPs, pod.status?.podIP),
  nodeAddresses: listed(pod.status?.hostIPs, pod.status?.hostIP),
  usable: isUsable(pod),
});

/** Its node's addresses are KubeVirt's secret; the machine's own way to its node ends at its launcher pod. */
export const probeableMachine = (machine: VirtualMachineInstance): Probeable => ({
  kind: VIRTUAL_MACHINE_INSTANCE,
  object: machine,
  addresses: [addressOf(machine)].filter((address) => address !== undefined),
  nodeAddresses: [],
  usable: isMachineUsable(machine),
});

/**
 * No run's commands have been in it: what it answers is its image's word. A sandbox that was made for one run, and
 * belongs to it from its beginning, is handed over after its proof only, so it counts until then.
 */
export const isUntouched = (object: KubeObject): boolean =>
  object.metadata.labels?.[LABELS.role] === 'standby' || awaitsProof(object);

export const uidOf = ({ object }: Probeable): string => object.metadata.uid ?? '';

export const refOf = ({ object: { metadata } }: Probeable) => ({
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
});

function listed(
  all: readonly { readonly ip?: string }[] | undefined,
  one: string | undefined,
): readonly string[] {
  const found = (all ?? []).flatMap(({ ip }) => (ip === undefined ? [] : [ip]));
  return found.length > 0 || one === undefined ? found : [one];
}

import { ANNOTATIONS } from '../../crds/meta.ts';
import { isKubeError } from '../../kube/errors.ts';
import { VIRTUAL_MACHINE_INSTANCE, type VirtualMachineInstance } from '../../kube/kubevirt/kinds.ts';
import type { KubeClient } from '../../kube/port.ts';
import { SandboxLostError } from '../port.ts';

/** By what a machine is known again, on any address. */
export interface MachineIdentity {
  /** Type and key, as in known_hosts. */
  readonly hostKey: string;
  /** The kernel's own id of this boot; empty when the guest does not tell. */
  readonly bootId: string;
}

/** What was pinned on the machine at the first contact with it, by whichever process. */
export function pinnedOn({ metadata }: VirtualMachineInstance): MachineIdentity | undefined {
  const hostKey = metadata.annotations?.[ANNOTATIONS.hostKey];
  return hostKey === undefined
    ? undefined
    : { hostKey, bootId: metadata.annotations?.[ANNOTATIONS.bootId] ?? '' };
}

/** Throws `SandboxLostError` when somebody else answered, or the machine has been started again. */
export function checkIdentity(where: string, pinned: MachineIdentity, met: MachineIdentity): void {
  if (met.hostKey !== pinned.hostKey) throw otherHostKey(where);
  if (met.bootId !== pinned.bootId)
    throw new SandboxLostError(
      `sandbox ${where} is gone: what answers at its address has been started since the first contact`,
    );
}

export const otherHostKey = (where: string): SandboxLostError =>
  new SandboxLostError(
    `sandbox ${where} is gone: what answers at its address has another host key than at the first contact`,
  );

const ATTEMPTS = 5;

/**
 * Writes the identity on the machine, once for all processes: who comes second is held to what the first has
 * written. Throws KubeError, or `SandboxLostError`.
 */
export async function pin(
  kube: Pick<KubeClient, 'get' | 'patch'>,
  machine: VirtualMachineInstance,
  met: MachineIdentity,
  where: string,
): Promise<void> {
  const { namespace = '', name = '', uid } = machine.metadata;
  let seen: VirtualMachineInstance | undefined = machine;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (seen === undefined || seen.metadata.uid !== uid)
      throw new SandboxLostError(`sandbox ${where} is gone: the machine does not exist any more`);
    const pinned = pinnedOn(seen);
    if (pinned !== undefined) return checkIdentity(where, pinned, met);
    const annotations = { [ANNOTATIONS.hostKey]: met.hostKey, [ANNOTATIONS.bootId]: met.bootId };
    const { resourceVersion } = seen.metadata;
    try {
      await kube.patch(
        VIRTUAL_MACHINE_INSTANCE,
        { namespace, name },
        { type: 'merge', body: { metadata: { uid, resourceVersion, annotations } } },
      );
      return;
    } catch (error) {
      if (!isKubeError(error, 'Conflict', 'NotFound')) throw error;
      seen = await kube.get(VIRTUAL_MACHINE_INSTANCE, { namespace, name });
    }
  }
  throw new Error(`${where}: its host key could not be written down, the object changes all the time`);
}

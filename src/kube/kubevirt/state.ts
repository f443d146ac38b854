import type { PodProblem } from '../pod-state.ts';
import type { VirtualMachineInstance } from './kinds.ts';

/**
 * The address of the machine, undefined as long as it has none. Phase Running is no proof: the interface may stand
 * there without an address while `activePods` names a launcher already.
 */
export function addressOf(machine: VirtualMachineInstance): string | undefined {
  const addresses = machine.status?.interfaces?.map(({ ipAddress }) => ipAddress?.trim() ?? '') ?? [];
  return addresses.find((address) => address !== '');
}

export function hasEnded({ status }: VirtualMachineInstance): boolean {
  return status?.phase === 'Failed' || status?.phase === 'Succeeded';
}

/**
 * Whether commands can be expected to run in the machine, as far as its object says: Running, Ready, with an
 * address, not being deleted, not about to leave its node. That its sshd answers only a command shows.
 */
export function isMachineUsable(machine: VirtualMachineInstance): boolean {
  return (
    machine.metadata.deletionTimestamp === undefined &&
    machine.status?.phase === 'Running' &&
    machine.status.evacuationNodeName === undefined &&
    addressOf(machine) !== undefined &&
    condition(machine, 'Ready')?.status === 'True'
  );
}

/** What keeps the machine from becoming usable, undefined while it is merely starting, running or going. */
export function machineProblem(machine: VirtualMachineInstance): PodProblem | undefined {
  const { status, metadata } = machine;
  if (status === undefined || metadata.deletionTimestamp !== undefined) return undefined;
  if (hasEnded(machine)) {
    const phase = status.phase ?? '';
    const said = condition(machine, 'Ready')?.message ?? `the machine is ${phase}`;
    return { reason: status.reason ?? phase, message: said, kind: 'Other' };
  }
  const unsynced = condition(machine, 'Synchronized');
  if (unsynced?.status === 'False' && unsynced.reason !== undefined) {
    const { reason, message = 'KubeVirt cannot start the machine' } = unsynced;
    return { reason, message, kind: KINDS[reason] ?? 'Other' };
  }
  const scheduled = condition(machine, 'PodScheduled');
  if (scheduled?.status !== 'False') return undefined;
  return {
    reason: scheduled.reason ?? 'Unschedulable',
    message: scheduled.message ?? 'no node takes the machine',
    kind: 'Other',
  };
}

/** The launcher's image errors reach the machine under Kubernetes' own words. */
const KINDS: Readonly<Record<string, PodProblem['kind']>> = {
  ErrImagePull: 'Pull',
  ImagePullBackOff: 'Pull',
  InvalidImageName: 'Permanent',
  ErrImageNeverPull: 'Permanent',
};

const condition = ({ status }: VirtualMachineInstance, type: string) =>
  status?.conditions?.find((candidate) => candidate.type === type);

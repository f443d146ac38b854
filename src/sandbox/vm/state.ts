import type { VirtualMachineInstance } from '../../kube/kubevirt/kinds.ts';
import { addressOf, hasEnded, machineProblem } from '../../kube/kubevirt/state.ts';

/** What can be expected of a machine. */
export type MachineOutlook =
  /** That it answers there is not said. */
  | { readonly kind: 'Reachable'; readonly address: string }
  /** May still become so. `failing`: something that seldom mends itself. */
  | { readonly kind: 'Starting'; readonly why: string; readonly failing: boolean }
  | { readonly kind: 'Gone'; readonly why: string };

/** `uid`: the machine that is meant; another one of the same name is not it. */
export function machineOutlook(
  machine: VirtualMachineInstance | undefined,
  uid: string | undefined,
): MachineOutlook {
  if (machine === undefined) return { kind: 'Gone', why: 'the machine does not exist any more' };
  if (uid !== undefined && machine.metadata.uid !== uid)
    return { kind: 'Gone', why: 'another machine has taken its name' };
  if (machine.metadata.deletionTimestamp !== undefined)
    return { kind: 'Gone', why: 'the machine is being deleted' };
  const { phase = 'Pending', reason } = machine.status ?? {};
  if (hasEnded(machine))
    return { kind: 'Gone', why: `the machine has ended: ${[phase, reason].filter(Boolean).join(', ')}` };
  const problem = machineProblem(machine);
  if (problem !== undefined) {
    const failing = problem.kind !== 'Other';
    return { kind: 'Starting', why: `${problem.reason}: ${problem.message}`, failing };
  }
  if (phase !== 'Running') return { kind: 'Starting', why: `it is in phase ${phase}`, failing: false };
  const address = addressOf(machine);
  if (address === undefined) return { kind: 'Starting', why: 'it runs and has no address', failing: false };
  return { kind: 'Reachable', address };
}

import type { AgentRun } from '../../crds/agent-run.ts';
import { isTerminal } from '../../crds/reasons.ts';
import type { LocalState } from './local.ts';

/** How often such a run is thought of again, which costs no request; a change, or a replica that dies, wakes it at once. */
export const ELSEWHERE_POLL_MS = 3_000;

export interface Standing {
  /** This process as holders are named. */
  readonly self: string;
  /** Whether this process has anything of the run: then it may have to end it. */
  readonly isLocal: boolean;
  /** False when nobody holds it, or what its holder holds may be taken over. */
  readonly holderAlive: boolean;
  /** False while this replica renews its Lease too late to take more upon itself. */
  readonly takesRuns: boolean;
}

/**
 * Whether a run, as the cache has it, is no business of this process for now: another replica works on it, or this
 * one has too much to do to take it and leaves it to one that has not. Every change of every run wakes all replicas;
 * without this each of them would read it from the API server each time.
 */
export function isElsewhere({ status }: AgentRun, standing: Standing): boolean {
  const { self, isLocal, holderAlive, takesRuns } = standing;
  if (isLocal || isTerminal(status?.phase) || status?.holder?.replica === self) return false;
  return holderAlive || !takesRuns;
}

/** Whether this process has anything of the run, or of an earlier one of its name (`namespace/name`). */
export function hasLocal(local: LocalState, name: string, uid: string): boolean {
  const held = [local.executions, local.sandboxes, local.openSessions, local.workflows];
  return held.some((one) => one.has(uid)) || (local.uids.get(name) ?? uid) !== uid;
}

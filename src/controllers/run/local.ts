import type { AgentWorkflow } from '../../crds/agent-workflow.ts';
import type { ObjectRef } from '../../kube/port.ts';
import type { MergeRequestFacts, NoteOutcome } from '../../notes/port.ts';
import type { Sandbox } from '../../sandbox/port.ts';
import { type Execution, StopReason } from './execution.ts';
import type { ProgressEdits } from './progress.ts';

/** Reads of GitLab that an admission waits for. They reject without being unhandled. */
export interface AskedGitLab {
  /** Monotonic. */
  readonly sinceMs: number;
  readonly facts: Promise<NoteOutcome<MergeRequestFacts>>;
  /** Why the user behind the run may not start it. */
  readonly denied: Promise<string | undefined>;
}

/**
 * What this process holds of the runs it works on, by their uid. Nothing here is needed to go on after a restart:
 * the sandbox is found again by its label, the loop by its checkpoints.
 */
export interface LocalState {
  readonly sandboxes: Map<string, Sandbox>;
  readonly executions: Map<string, Execution>;
  /** Begun with the hold, for the admission that follows it at once. */
  readonly asked: Map<string, AskedGitLab>;
  /** Runs that have the session they go on with in the store, as they found it. */
  readonly openSessions: Set<string>;
  /** Of those: which run had saved the session. */
  readonly savedBy: Map<string, string>;
  /** Runs whose sandbox lingered for them, so that it holds the session's files. */
  readonly reclaimed: Set<string>;
  /** Runs whose note intent this process wrote and has not acted on yet, with the monotonic time of it. */
  readonly freshIntents: Map<string, number>;
  /** The workflow that a run goes on with: as it was last seen, and since its admission as it was then. */
  readonly workflows: Map<string, AgentWorkflow>;
  /** Why the last step of a run failed, until one goes well. */
  readonly failures: Map<string, string>;
  /** `namespace/name` of the runs that were seen last under this uid. */
  readonly uids: Map<string, string>;
  /** Of runs whose note shows their progress: what this process did about it. */
  readonly progress: Map<string, ProgressEdits>;
  /** Names of the tools that a run's model called last, the newest last. Only of those that it was given. */
  readonly lately: Map<string, readonly string[]>;
  /** Set for good when the process ends its agent loops: none begins afterwards. */
  stopping: boolean;
}

export const emptyLocalState = (): LocalState => ({
  sandboxes: new Map(),
  executions: new Map(),
  asked: new Map(),
  openSessions: new Set(),
  savedBy: new Map(),
  reclaimed: new Set(),
  freshIntents: new Map(),
  workflows: new Map(),
  failures: new Map(),
  uids: new Map(),
  progress: new Map(),
  lately: new Map(),
  stopping: false,
});

/** Drops the handles of one run; its loop must have ended. */
export function forget(local: LocalState, uid: string): void {
  local.sandboxes.delete(uid);
  local.executions.delete(uid);
  local.asked.delete(uid);
  local.openSessions.delete(uid);
  local.savedBy.delete(uid);
  local.reclaimed.delete(uid);
  local.freshIntents.delete(uid);
  local.workflows.delete(uid);
  local.failures.delete(uid);
  local.progress.delete(uid);
  local.lately.delete(uid);
}

/** A few, so that a reader sees what goes on. */
const LATELY = 3;

export function calledTool(local: LocalState, uid: string, name: string): void {
  const before = (local.lately.get(uid) ?? []).filter((one) => one !== name);
  local.lately.set(uid, [...before, name].slice(-LATELY));
}

/**
 * Tells which uid stands behind a name now; undefined when nothing does. The loop of an object that went away
 * under it (its finalizer taken by hand, say) is ended: nobody would read what it still pays for.
 */
export async function seen(local: LocalState, ref: ObjectRef, uid: string | undefined): Promise<void> {
  const name = `${ref.namespace}/${ref.name}`;
  const before = local.uids.get(name);
  if (uid === undefined) local.uids.delete(name);
  else local.uids.set(name, uid);
  if (before === undefined || before === uid) return;
  await local.executions.get(before)?.stop(new StopReason('Fenced', 'The AgentRun is gone'));
  forget(local, before);
}

/** Ends every agent loop of this process; what they return is thrown away, since another holder goes on. */
export async function stopAll(local: LocalState): Promise<void> {
  local.stopping = true;
  const reason = new StopReason('Shutdown', 'The operator stops; another process goes on with the run');
  await Promise.all([...local.executions.values()].map((execution) => execution.stop(reason)));
}

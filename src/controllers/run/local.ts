import type { Sandbox } from '../../sandbox/port.ts';
import type { Execution } from './execution.ts';

/**
 * What this process holds of the runs it works on. Nothing here is needed to go on after a restart: the
 * sandbox is found again by its label, the loop by its checkpoints.
 */
export interface LocalState {
  readonly sandboxes: Map<string, Sandbox>;
  readonly executions: Map<string, Execution>;
  /** Runs whose note intent this process wrote and has not acted on yet. */
  readonly freshIntents: Set<string>;
}

export const emptyLocalState = (): LocalState => ({
  sandboxes: new Map(),
  executions: new Map(),
  freshIntents: new Set(),
});

import type { AgentRun } from '../../crds/agent-run.ts';
import { isTerminal } from '../../crds/reasons.ts';
import type { Change } from '../../kube/cache.ts';

/**
 * The workflows whose status a change of a run may change, as `namespace/name`. A run counts from when it is there
 * until it has ended, and what is kept for it is in use for as long: its many steps in between wake nobody.
 */
export function wokenByRun(change: Change<AgentRun>): readonly string[] {
  const { type, object } = change;
  if (type !== 'Modified') return [workflowKey(object)];
  const { previous } = change;
  const same = previous.metadata.uid === object.metadata.uid && hasEnded(previous) === hasEnded(object);
  return same ? [] : [...new Set([workflowKey(previous), workflowKey(object)])];
}

const hasEnded = ({ status }: AgentRun): boolean => isTerminal(status?.phase);

const workflowKey = ({ metadata, spec }: AgentRun): string =>
  `${metadata.namespace ?? ''}/${spec.workflowRef.name}`;

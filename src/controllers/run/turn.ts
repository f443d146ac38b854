import type { AgentRun } from '../../crds/agent-run.ts';
import { isTerminal } from '../../crds/reasons.ts';

/**
 * The first run of the same session that this one has to wait for. Runs take their turns in the order of their
 * creation; one whose loop has begun waits for nobody, so two runs never wait for each other.
 */
export function runBefore(run: AgentRun, ofSession: readonly AgentRun[]): AgentRun | undefined {
  return runsBefore(run, ofSession)[0];
}

/** The first of them whose note does not stand yet: the answers of a thread stand in the order of the replies. */
export function runUntold(run: AgentRun, ofSession: readonly AgentRun[]): AgentRun | undefined {
  return runsBefore(run, ofSession).find(
    ({ spec, status }) => spec.publish.kind === 'Note' && status?.note === undefined,
  );
}

function runsBefore(run: AgentRun, ofSession: readonly AgentRun[]): readonly AgentRun[] {
  if (hasBegun(run)) return [];
  return ofSession
    .filter(({ metadata, status }) => metadata.uid !== run.metadata.uid && !isTerminal(status?.phase))
    .filter((other) => hasBegun(other) || compare(other, run) < 0)
    .toSorted(compare);
}

const hasBegun = ({ status }: AgentRun): boolean =>
  status?.phase === 'Running' || status?.phase === 'Finishing';

/** Creation times have whole seconds: within one, replies go by their notes, and the rest by uid. */
function compare(a: AgentRun, b: AgentRun): number {
  const time =
    Date.parse(a.metadata.creationTimestamp ?? '') - Date.parse(b.metadata.creationTimestamp ?? '');
  if (time !== 0 && !Number.isNaN(time)) return time;
  const notes = (a.spec.trigger.noteId ?? 0) - (b.spec.trigger.noteId ?? 0);
  if (notes !== 0) return notes;
  return (a.metadata.uid ?? '') < (b.metadata.uid ?? '') ? -1 : 1;
}

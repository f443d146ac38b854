import type { AgentRun } from '../../crds/agent-run.ts';

/** What the run's note says of its progress, while the loop goes on. */
export type ProgressNote =
  /** It is not to be edited now; `ms`: when it may be. */
  | { readonly kind: 'Quiet'; readonly ms?: number }
  /** There is something new to say, and the last edit is long enough ago. */
  | { readonly kind: 'Due' }
  /** The status says that it is about to be edited, and this process wrote that. */
  | { readonly kind: 'Announced' };

/** What this process knows of the edits of one run's note. */
export interface ProgressEdits {
  /** Monotonic time of an announcement that was not acted on yet. */
  readonly announcedMs?: number;
  /** Checkpoint that the note tells of. */
  readonly told?: number;
  /** GitLab refused an edit: the note is gone, or out of reach. No more are tried. */
  readonly refused?: true;
}

/** People watch a merge request by its notifications and its history: more is noise. */
const PROGRESS_PERIOD_MS = 60_000;

/** Pure. `edits` is undefined when the note does not show progress. */
export function progressNote(
  { status }: AgentRun,
  edits: ProgressEdits | undefined,
  now: Date,
): ProgressNote {
  if (edits === undefined || edits.refused || status?.note === undefined) return { kind: 'Quiet' };
  // The note asks somebody something.
  if (status.approvals?.some(({ state }) => state === 'Waiting')) return { kind: 'Quiet' };
  if (edits.announcedMs !== undefined) return { kind: 'Announced' };
  // The next checkpoint wakes the run.
  if ((status.checkpoint?.sequence ?? 0) <= (edits.told ?? 0)) return { kind: 'Quiet' };
  const last = status.noteProgressTime ?? status.noteIntent?.time ?? status.startTime ?? '';
  const ms = Date.parse(last) + PROGRESS_PERIOD_MS - now.getTime();
  return ms > 0 ? { kind: 'Quiet', ms } : { kind: 'Due' };
}

import { CheckpointFailure, messageOf, note, type Run } from './loop-run.ts';
import { type Contents, ModelError, type Usage } from './models/port.ts';
import { closingText } from './prompts.ts';
import { resumableContents } from './resumable.ts';
import type { StopRule } from './stop-rules.ts';
import type { TranscriptEntry } from './transcript.ts';
import type { Ending, EndKind } from './verdict.ts';

export interface LoopResult {
  readonly kind: EndKind;
  readonly reason: StopRule;
  /** Markdown for the note; never empty. Without a report it says why, and what the model had noted. */
  readonly text: string;
  /** The provider's or the system's own words on a failure. */
  readonly detail?: string;
  /** Set with `modelError`. */
  readonly modelStatus?: number;
  readonly usage: Usage;
  /** Absent when unknown. */
  readonly costUsd?: number;
  readonly iterations: number;
  readonly toolCalls: number;
  readonly contents: Contents;
  readonly transcript: readonly TranscriptEntry[];
  /** Of the last checkpoint; 0 when there was none. */
  readonly sequence: number;
}

export function endAfterError(run: Run, error: unknown): LoopResult {
  const detail = messageOf(error);
  const ending = endingOf(run, error, detail);
  if (ending.kind === 'Failed') note(run, { kind: 'error', text: detail });
  const status = error instanceof ModelError ? error.status : undefined;
  return { ...resultOf(run, ending), ...(status !== undefined && { modelStatus: status }) };
}

function endingOf({ state, signal }: Run, error: unknown, detail: string): Ending {
  if (signal.aborted) {
    const byDeadline = signal.reason instanceof Error && signal.reason.name === 'TimeoutError';
    return { kind: 'Cancelled', rule: byDeadline ? 'timeout' : 'cancelled', text: '' };
  }
  // A report that could not be checkpointed is still a report, unless somebody else has taken the run.
  const text = state.ending?.text ?? '';
  if (error instanceof CheckpointFailure) return { kind: 'Failed', rule: 'checkpoint', text, detail };
  if (error instanceof ModelError) return { kind: 'Failed', rule: 'modelError', text: '', detail };
  return { kind: 'Failed', rule: 'unexpected', text, detail };
}

export function resultOf(run: Run, ending: Ending): LoopResult {
  const { state, redact } = run;
  const { kind, rule, detail } = ending;
  run.emit({ type: 'Ended', kind, reason: rule, iterations: state.iteration });
  return {
    kind,
    reason: rule,
    text: textOf(run, ending),
    ...(detail !== undefined && { detail: redact(detail) }),
    usage: state.usage,
    ...(state.costUsd !== undefined && { costUsd: state.costUsd }),
    iterations: state.iteration,
    toolCalls: state.toolCalls,
    contents: resumableContents(run.model, state),
    transcript: state.transcript,
    sequence: state.sequence,
  };
}

/** Partial over nothing: without a report the reason, and the last thing that the model noted. */
function textOf({ state, limits, redact }: Run, { kind, rule, text, detail }: Ending): string {
  const closing = closingText(rule, limits, detail === undefined ? undefined : redact(detail));
  if (kind === 'Answered') return text;
  if (text !== '') return kind === 'Partial' && isLimit(rule) ? text : `${text}\n\n_${closing}_`;
  return state.interimText === '' ? closing : `${closing}\n\nThe model's last notes:\n\n${state.interimText}`;
}

/** There the model was told to write the report, and did. */
function isLimit(rule: StopRule): boolean {
  return rule === 'iterationLimit' || rule === 'contextLimit' || rule === 'budget';
}

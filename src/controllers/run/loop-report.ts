import type { LoopResult } from '../../agent/loop.ts';
import type { Usage } from '../../agent/models/port.ts';
import { renderMarkdown, type TranscriptHeader } from '../../agent/transcript.ts';
import type { AgentRun } from '../../crds/agent-run.ts';
import type { RunReason } from '../../crds/reasons.ts';
import { clip } from '../../crds/shapes.ts';
import { type LoopProgress, money, type RunResult } from './result.ts';
import { counted } from './texts.ts';

/** How much of the transcript goes below the answer in the note; all of it is in the session. */
const NOTE_TRANSCRIPT_CHARS = 20_000;
/** Longest tool argument or result shown there. */
const NOTE_FIELD_CHARS = 600;

/** What the model is told first: the event, as JSON. */
export function firstMessage(run: Pick<AgentRun, 'spec' | 'status'>): string {
  const { project, iid } = run.spec.mergeRequest;
  const { kind, user, eventId } = run.spec.trigger;
  const event = {
    project,
    iid,
    sha: run.status?.sha,
    trigger: { kind, user, eventId },
    request: run.spec.message,
  };
  return JSON.stringify(event, null, 2);
}

/** The end of a loop as the end of its run. */
export function resultOf(
  run: Pick<AgentRun, 'spec'>,
  end: LoopResult,
  redact: (text: string) => string,
): RunResult {
  const { project, iid } = run.spec.mergeRequest;
  const reported = end.kind === 'Answered' || end.kind === 'Partial';
  const reason = reasonOf(end);
  const entries = [...end.transcript];
  const excerpt = renderMarkdown({ title: `${project}!${iid}`, facts: {} }, entries, {
    maxFieldChars: NOTE_FIELD_CHARS,
    maxChars: NOTE_TRANSCRIPT_CHARS,
  });
  return {
    version: 1,
    reason,
    message: clip(redact(messageFor(end, reason, reported))),
    text: end.text,
    reported,
    // Money that was spent within what the user allowed has bought something, also without a report.
    transcriptExcerpt: reported || reason === 'BudgetExceeded' ? excerpt : '',
  };
}

/** Head of the run's transcript: the same while it runs and afterwards, for those who follow it. */
export function transcriptHeader(
  run: Pick<AgentRun, 'spec' | 'metadata'>,
  { model, session }: { readonly model: string; readonly session: string },
): TranscriptHeader {
  const { project, iid } = run.spec.mergeRequest;
  return {
    title: `${run.spec.workflowRef.name} on ${project}!${iid}`,
    facts: { run: `${run.metadata.namespace}/${run.metadata.name}`, model, session },
    ...(run.spec.message === undefined ? {} : { request: run.spec.message }),
  };
}

/** Tokens as an AgentRun's status has them. */
export const countsOf = (usage: Usage): LoopProgress['usage'] => ({
  input: usage.inputTokens,
  output: usage.outputTokens,
  cacheRead: usage.cacheReadTokens,
  cacheWrite: usage.cacheWriteTokens,
});

function reasonOf({ kind, reason }: LoopResult): RunReason {
  if (kind === 'Answered') return 'Succeeded';
  switch (reason) {
    case 'budget':
      return 'BudgetExceeded';
    case 'modelError':
      return 'ModelError';
    case 'cancelled':
      return 'Cancelled';
    case 'timeout':
      return 'Timeout';
    default:
      if (kind === 'Partial') return 'Partial';
      return kind === 'NoAnswer' ? 'ModelNoAnswer' : 'ModelError';
  }
}

function messageFor(end: LoopResult, reason: RunReason, reported: boolean): string {
  const calls = counted(end.iterations, 'model call');
  if (reason === 'Succeeded') return `Answered after ${calls}`;
  if (reason === 'BudgetExceeded') {
    const spent = end.costUsd === undefined ? '' : `, for $${money(end.costUsd)}`;
    const without = reported ? '' : ', before there was a report';
    return `The budget ended the analysis after ${calls} and ${counted(end.toolCalls, 'tool call')}${spent}${without}`;
  }
  return end.detail ?? `Ended by ${end.reason} after ${calls}`;
}

import { SCRATCH, SPILL_DIR } from '../sandbox/port.ts';
import { type Limits, SOFT_SHARE } from './limits.ts';
import { loopPrompt } from './loop-prompts.ts';
import type { LimitRule, Outlook, Step, StopRule } from './stop-rules.ts';

/** First part of every system prompt. The order after it: tool notes, workflow, continuation. */
export const BASE_SYSTEM_PROMPT = loopPrompt('base', {});

/** Second part, for runs that have a sandbox. */
export const SANDBOX_PROMPT = loopPrompt('sandbox', { scratch: SCRATCH, spill: SPILL_DIR });

/** Last part when a reply continues an earlier conversation. */
export const CONTINUATION_PROMPT = loopPrompt('continuation', {});

export function systemPrompt(parts: {
  /** The workflow's own text, used verbatim. */
  readonly workflow: string;
  readonly toolNotes: string;
  readonly hasSandbox: boolean;
  readonly continuation: boolean;
}): string {
  return [
    BASE_SYSTEM_PROMPT,
    parts.hasSandbox ? SANDBOX_PROMPT : '',
    parts.toolNotes,
    parts.workflow.trim(),
    parts.continuation ? CONTINUATION_PROMPT : '',
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

export type Nudge = 'Empty' | 'MalformedCall';

const NUDGES: Readonly<Record<Nudge, string>> = {
  Empty: loopPrompt('empty-answer', {}),
  MalformedCall: loopPrompt('malformed-call', {}),
};

/** What is said to the model with the next call only, never kept in the conversation. Undefined when nothing is. */
export function ephemeralText(step: Step, outlook: Outlook, nudge: Nudge | undefined): string | undefined {
  const parts = nudge ? [NUDGES[nudge]] : [];
  if (step.level === 'Soft') parts.push(...step.rules.map((rule) => softWarning(rule, outlook)));
  if (step.level === 'Hard') parts.push(finalTurnWarning(step.rule, outlook.limits));
  return parts.length > 0 ? parts.join('\n\n') : undefined;
}

function softWarning(rule: LimitRule, { limits, iteration, lastInputTokens }: Outlook): string {
  switch (rule) {
    case 'iterationLimit':
      return loopPrompt('iteration-warning', { iteration, maxIterations: limits.maxIterations });
    case 'contextLimit':
      return loopPrompt('context-warning', { tokens: lastInputTokens, maxTokens: limits.contextTokens });
    case 'budget':
      return loopPrompt('budget-warning', { percent: SOFT_SHARE * 100 });
    default:
      return rule satisfies never;
  }
}

function finalTurnWarning(rule: LimitRule, limits: Limits): string {
  return loopPrompt('final-turn', { limit: limitName(rule, limits) });
}

/** Stands where an answer should be, so that the merge request gets the reason at least. */
export function closingText(rule: StopRule, limits: Limits, detail: string | undefined): string {
  const because = detail ? `: ${detail.replace(/\.+$/, '')}` : '';
  switch (rule) {
    case 'answered':
      return '';
    case 'iterationLimit':
    case 'contextLimit':
    case 'budget':
      return `The analysis ended at a limit (${limitName(rule, limits)}) before there was a report.`;
    case 'outputLimit':
      return "The answer was cut by the model's output limit; its end is missing.";
    case 'noAnswer':
      return `The model gave no answer${because}.`;
    case 'blocked':
      return `The model's provider refused to answer${because}.`;
    case 'modelError':
      return `The model could not be reached or refused the request${because}.`;
    case 'cancelled':
      return 'The analysis was cancelled.';
    case 'timeout':
      return 'The analysis ran out of time.';
    case 'checkpoint':
      return `The analysis was stopped because its state could not be saved${because}.`;
    case 'unexpected':
      return `The analysis was ended by an unexpected error${because}.`;
    default:
      return rule satisfies never;
  }
}

/** Result of a call in an answer that the output limit cut: its arguments may be incomplete without looking so. */
export const CUT_CALL_ERROR =
  "Not executed: the answer was cut by the model's output limit, so the arguments may be incomplete. Repeat the call with shorter arguments.";

/** Result of a call that was made although there were no tools any more. */
export const NO_TOOLS_ERROR = 'Not executed: a limit was reached and tools are no longer available.';

/** Result of a call that the end of the run overtook. */
export const STOPPED_ERROR = 'Not finished: the run was stopped.';

function limitName(rule: LimitRule, limits: Limits): string {
  switch (rule) {
    case 'iterationLimit':
      return `${limits.maxIterations} turns`;
    case 'contextLimit':
      return `${limits.contextTokens} tokens of conversation`;
    case 'budget':
      return `a budget of $${limits.budgetUsd ?? 0}`;
    default:
      return rule satisfies never;
  }
}

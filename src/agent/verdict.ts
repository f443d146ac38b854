import { MAX_EMPTY_RETRIES } from './limits.ts';
import type { ModelResponse } from './models/port.ts';
import { CUT_CALL_ERROR, NO_TOOLS_ERROR, type Nudge } from './prompts.ts';
import type { Step, StopRule } from './stop-rules.ts';

export type EndKind =
  /** The model's own report, all of it. */
  | 'Answered'
  /** A report made at a limit, or cut. */
  | 'Partial'
  /** No report; `text` says why and holds what the model noted on the way. */
  | 'NoAnswer'
  | 'Failed'
  /** Stopped from outside; `reason` tells a cancellation from a deadline. */
  | 'Cancelled';

export interface Ending {
  readonly kind: EndKind;
  readonly rule: StopRule;
  /** The model's own last text, empty when there is none. */
  readonly text: string;
  readonly detail?: string;
}

/** What an answer means for the loop. */
export type Verdict =
  | { readonly kind: 'CallTools' }
  /** Answer every call with this error; nothing is executed. */
  | { readonly kind: 'RefuseCalls'; readonly error: string; readonly ending?: Ending }
  /** The answer is dropped; the nudge goes with the next call. */
  | { readonly kind: 'AskAgain'; readonly nudge: Nudge }
  | { readonly kind: 'End'; readonly ending: Ending };

export interface Circumstances {
  readonly step: Step;
  /** Empty or malformed answers since the last executed tool call. */
  readonly emptyAnswers: number;
  readonly lastIteration: boolean;
}

/** Pure. Everything that the loop does after an answer follows from this. */
export function judge(answer: ModelResponse, { step, emptyAnswers, lastIteration }: Circumstances): Verdict {
  const text = answer.text.trim() === '' ? '' : answer.text;
  const limit = step.level === 'Hard' ? step.rule : undefined;
  const detail = answer.detail === undefined ? {} : { detail: answer.detail };

  if (answer.toolCalls.length > 0) {
    if (limit) {
      const kind = text ? 'Partial' : 'NoAnswer';
      return { kind: 'RefuseCalls', error: NO_TOOLS_ERROR, ending: { kind, rule: limit, text } };
    }
    if (answer.finishReason === 'Length') return { kind: 'RefuseCalls', error: CUT_CALL_ERROR };
    return { kind: 'CallTools' };
  }

  if (text && answer.finishReason !== 'MalformedCall') {
    switch (answer.finishReason) {
      case 'Length':
        return end({ kind: 'Partial', rule: 'outputLimit', text, ...detail });
      case 'Safety':
        return end({ kind: 'Partial', rule: 'blocked', text, ...detail });
      default:
        return end(
          limit ? { kind: 'Partial', rule: limit, text } : { kind: 'Answered', rule: 'answered', text },
        );
    }
  }

  // The same prompt would be blocked again.
  if (answer.finishReason === 'Safety') return end({ kind: 'NoAnswer', rule: 'blocked', text, ...detail });
  if (emptyAnswers >= MAX_EMPTY_RETRIES) return end({ kind: 'NoAnswer', rule: 'noAnswer', text, ...detail });
  if (lastIteration) return end({ kind: 'NoAnswer', rule: 'iterationLimit', text, ...detail });
  return { kind: 'AskAgain', nudge: answer.finishReason === 'MalformedCall' ? 'MalformedCall' : 'Empty' };
}

function end(ending: Ending): Verdict {
  return { kind: 'End', ending };
}

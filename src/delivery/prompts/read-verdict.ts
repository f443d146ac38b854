import type { Answer } from '../port.ts';
import { Verdict } from '../verdict.ts';

export type ReadVerdict =
  | { readonly kind: 'Verdict'; readonly verdict: Verdict }
  /** Nobody's judgement: the run escalates and says this. */
  | { readonly kind: 'None'; readonly reason: string };

/** A verdict that contradicts itself is none. */
export function readVerdict(answer: Answer): ReadVerdict {
  if (answer.kind === 'Unreachable') return none(`the model could not be reached: ${answer.message}`);
  if (answer.kind === 'Malformed') return none(`the model's answer is no JSON: ${answer.message}`);
  const parsed = Verdict.safeParse(answer.value);
  if (!parsed.success) return none("the model's answer has not the fields that were asked for");
  const verdict = parsed.data;
  if (verdict.summary.trim() === '') return none('the model gave no summary');
  if (verdict.classification === 'mechanical' && verdict.edits.length === 0)
    return none('the model calls it mechanical and proposes no edit');
  if (verdict.classification === 'escalate' && verdict.escalationReason.trim() === '')
    return { kind: 'Verdict', verdict: { ...verdict, escalationReason: verdict.reasoning } };
  return { kind: 'Verdict', verdict };
}

const none = (reason: string): ReadVerdict => ({ kind: 'None', reason });

import { type Limits, SOFT_SHARE } from './limits.ts';

/** Everything that can end a loop. The name is recorded with the result. */
export type StopRule =
  | 'answered'
  | 'iterationLimit'
  | 'contextLimit'
  | 'budget'
  /** The answer was cut by the model's output limit. */
  | 'outputLimit'
  /** Only empty or malformed answers, also after the nudges. */
  | 'noAnswer'
  /** The provider refused the prompt or the answer (safety, recitation). */
  | 'blocked'
  | 'modelError'
  | 'cancelled'
  | 'timeout'
  /** The conversation could not be checkpointed, e.g. because another holder took the run over. */
  | 'checkpoint'
  | 'unexpected';

/** What is known before a call is made. */
export interface Outlook {
  readonly limits: Limits;
  /** The call about to be made, from 1. */
  readonly iteration: number;
  /** Input tokens of the call before, as the provider counted them; 0 before the first. */
  readonly lastInputTokens: number;
  /** Undefined when the model's price is unknown: then the budget has no say. */
  readonly money: { readonly spentUsd: number; readonly nextCallUsd: number } | undefined;
}

export type LimitRule = 'iterationLimit' | 'contextLimit' | 'budget';

export type Step =
  | { readonly level: 'Normal' }
  /** Tools stay, the model is told how much is left. */
  | { readonly level: 'Soft'; readonly rules: readonly LimitRule[] }
  /** Tools are taken away: the model must answer in text now. */
  | { readonly level: 'Hard'; readonly rule: LimitRule }
  /** Not even the report can be paid. */
  | { readonly level: 'Stop'; readonly rule: LimitRule };

interface Rule {
  readonly name: LimitRule;
  readonly speaks: (outlook: Outlook) => boolean;
}

const STOP_RULES: readonly Rule[] = [{ name: 'budget', speaks: (o) => budgetLeft(o) < costOfNext(o) }];

const HARD_RULES: readonly Rule[] = [
  { name: 'iterationLimit', speaks: (o) => o.iteration >= o.limits.maxIterations },
  { name: 'contextLimit', speaks: (o) => o.lastInputTokens >= o.limits.contextTokens },
  // Two calls must be affordable for a normal turn: this one and the report after it.
  { name: 'budget', speaks: (o) => budgetLeft(o) < 2 * costOfNext(o) },
];

const SOFT_RULES: readonly Rule[] = [
  { name: 'iterationLimit', speaks: (o) => o.iteration >= SOFT_SHARE * o.limits.maxIterations },
  { name: 'contextLimit', speaks: (o) => o.lastInputTokens >= SOFT_SHARE * o.limits.contextTokens },
  {
    name: 'budget',
    speaks: (o) => spent(o) >= SOFT_SHARE * (o.limits.budgetUsd ?? Number.POSITIVE_INFINITY),
  },
];

/** Which step the limits ask for before the next call. */
export function nextStep(outlook: Outlook): Step {
  const stop = STOP_RULES.find((rule) => rule.speaks(outlook));
  if (stop) return { level: 'Stop', rule: stop.name };
  const hard = HARD_RULES.find((rule) => rule.speaks(outlook));
  if (hard) return { level: 'Hard', rule: hard.name };
  const soft = SOFT_RULES.filter((rule) => rule.speaks(outlook)).map((rule) => rule.name);
  return soft.length > 0 ? { level: 'Soft', rules: soft } : { level: 'Normal' };
}

/** Infinity when there is no budget or no price. */
function budgetLeft({ limits, money }: Outlook): number {
  if (limits.budgetUsd === undefined || money === undefined) return Number.POSITIVE_INFINITY;
  return limits.budgetUsd - money.spentUsd;
}

function spent({ money }: Outlook): number {
  return money?.spentUsd ?? Number.NEGATIVE_INFINITY;
}

function costOfNext({ money }: Outlook): number {
  return money?.nextCallUsd ?? 0;
}

import { describe, expect, test } from 'vitest';
import { nextStep, type Outlook } from './stop-rules.ts';

const limits = { maxIterations: 30, contextTokens: 60_000 };
const outlook = (more: Partial<Outlook> = {}): Outlook => ({
  limits,
  iteration: 1,
  lastInputTokens: 0,
  money: undefined,
  ...more,
});
const money = (spentUsd: number, nextCallUsd: number) => ({ spentUsd, nextCallUsd });
const budget = { ...limits, budgetUsd: 10 };

describe('the step before a call', () => {
  test.each([
    ['is normal below 80 % of both limits', { iteration: 23, lastInputTokens: 47_999 }, 'Normal', undefined],
    ['is soft from 80 % of the iterations on', { iteration: 24 }, 'Soft', ['iterationLimit']],
    ['is soft from 80 % of the context on', { lastInputTokens: 48_000 }, 'Soft', ['contextLimit']],
    [
      'names both when both are near',
      { iteration: 24, lastInputTokens: 48_000 },
      'Soft',
      ['iterationLimit', 'contextLimit'],
    ],
    ['is hard in the last iteration', { iteration: 30 }, 'Hard', 'iterationLimit'],
    ['is hard past the last iteration', { iteration: 31 }, 'Hard', 'iterationLimit'],
    ['is hard when the context is full', { lastInputTokens: 60_000 }, 'Hard', 'contextLimit'],
    [
      'is hard at once when there is one iteration',
      { limits: { ...limits, maxIterations: 1 } },
      'Hard',
      'iterationLimit',
    ],
    [
      'does not look at a budget without a price',
      { limits: { ...limits, budgetUsd: 0 } },
      'Normal',
      undefined,
    ],
    ['does not look at money without a budget', { money: money(1e6, 1e6) }, 'Normal', undefined],
    [
      'is normal with most of the budget left',
      { limits: budget, money: money(7.9, 0.1) },
      'Normal',
      undefined,
    ],
    ['is soft with a fifth of the budget left', { limits: budget, money: money(8, 0.1) }, 'Soft', ['budget']],
    [
      'is hard when this call and the report cannot both be paid',
      { limits: budget, money: money(9, 0.51) },
      'Hard',
      'budget',
    ],
    ['stops when the report cannot be paid', { limits: budget, money: money(9, 1.01) }, 'Stop', 'budget'],
  ] as [string, Partial<Outlook>, string, unknown][])('%s', (_name, more, level, said) => {
    const step = nextStep(outlook(more));
    expect(step.level).toBe(level);
    expect(step.level === 'Soft' ? step.rules : 'rule' in step ? step.rule : undefined).toEqual(said);
  });
});

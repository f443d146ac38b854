import { expect, it } from 'vitest';
import { isTerminal, RUN_PHASES, RUN_REASONS } from './reasons.ts';

it('the last four phases are terminal, the others and an absent one are not', () => {
  expect(RUN_PHASES.map((phase) => isTerminal(phase))).toEqual([
    false,
    false,
    false,
    false,
    true,
    true,
    true,
    true,
  ]);
  expect(isTerminal(undefined)).toBe(false);
});

it('reasons are words that a condition may carry, each once', () => {
  for (const reason of RUN_REASONS) expect(reason).toMatch(/^[A-Z][A-Za-z]*$/);
  expect(new Set(RUN_REASONS).size).toBe(RUN_REASONS.length);
});

import { describe, expect, it } from 'vitest';
import { aRun } from '../../../test/builders/run.ts';
import type { LoopResult } from '../../agent/loop.ts';
import { resultOf } from './loop-report.ts';
import { phaseOf } from './steps/end.ts';

const anEnd = (end: Partial<LoopResult>): LoopResult => ({
  ...{ kind: 'Answered', reason: 'answered', text: 'It is the cache.', contents: [], sequence: 1 },
  ...{ iterations: 3, toolCalls: 1 },
  usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 },
  transcript: [
    { kind: 'model_text', iteration: 1, ts: '2026-03-01T12:00:00.000Z', text: 'I look at the log.' },
  ],
  ...end,
});
const told = (end: Partial<LoopResult>) => resultOf(aRun(), anEnd(end), (text) => text);

describe('the end of a loop as the end of its run', () => {
  it.each([
    ['Answered', 'answered', 'Succeeded', 'Succeeded'],
    ['Partial', 'iterationLimit', 'Partial', 'Succeeded'],
    ['Partial', 'outputLimit', 'Partial', 'Succeeded'],
    ['Partial', 'budget', 'BudgetExceeded', 'Succeeded'],
    ['NoAnswer', 'budget', 'BudgetExceeded', 'Succeeded'],
    ['NoAnswer', 'noAnswer', 'ModelNoAnswer', 'Failed'],
    ['NoAnswer', 'blocked', 'ModelNoAnswer', 'Failed'],
    ['Failed', 'modelError', 'ModelError', 'Failed'],
    ['Cancelled', 'cancelled', 'Cancelled', 'Cancelled'],
    ['Cancelled', 'timeout', 'Timeout', 'Failed'],
  ] as const)('%s by %s has the reason %s and the phase %s', (kind, reason, runReason, phase) => {
    const result = told({ kind, reason });
    expect(result.reason).toBe(runReason);
    expect(phaseOf(result.reason)).toBe(phase);
  });

  it('at the budget says how far it came and for how much, with a report', () => {
    const result = told({ kind: 'Partial', reason: 'budget', costUsd: 0.98 });
    expect(result).toMatchObject({
      reported: true,
      message: 'The budget ended the analysis after 3 model calls and 1 tool call, for $0.98',
    });
  });

  it('at the budget without a report says so, and shows what was done', () => {
    const result = told({ kind: 'NoAnswer', reason: 'budget', text: 'The analysis ended at a limit.' });
    expect(result).toMatchObject({
      reported: false,
      text: 'The analysis ended at a limit.',
      message: 'The budget ended the analysis after 3 model calls and 1 tool call, before there was a report',
      transcriptExcerpt: expect.stringContaining('I look at the log.'),
    });
  });

  it('without an answer has the provider’s words as its message, and no transcript', () => {
    const result = told({ kind: 'NoAnswer', reason: 'blocked', detail: 'blocked: SAFETY', text: 'Refused.' });
    expect(result).toMatchObject({ message: 'blocked: SAFETY', reported: false, transcriptExcerpt: '' });
  });
});

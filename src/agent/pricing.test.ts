import { expect, test } from 'vitest';
import { callCostUsd, priceOf } from './pricing.ts';
import { NO_USAGE } from './usage.ts';

const million = { ...NO_USAGE, inputTokens: 1_000_000 };

test('the longest prefix wins', () => {
  expect(priceOf('gemini-2.5-flash-lite')?.prefix).toBe('gemini-2.5-flash-lite');
  expect(priceOf('gemini-2.5-flash')?.prefix).toBe('gemini-2.5-flash');
  expect(priceOf('claude-sonnet-4-5@20250929')?.prefix).toBe('claude-sonnet-4-5');
  expect(priceOf('gemini-3.1-pro-preview')?.prefix).toBe('gemini-3.1-pro');
  expect(priceOf('claude-opus-4-1-20250805')?.prefix).toBe('claude-opus-4-1');
});

test.each([
  'demo-script',
  'qwen3:8b',
  'gemini-2.5-flash-image',
  'claude-opus-4-9',
  'claude-sonnet-6',
  'gemini-3-pro-ultra',
  '',
])('the cost of %j is unknown, not zero', (model) => {
  expect(callCostUsd(model, million)).toBeUndefined();
});

test('cached tokens are priced as cached, written ones as written, the rest as input', () => {
  const usage = {
    inputTokens: 1_000_000,
    outputTokens: 100_000,
    cacheReadTokens: 600_000,
    cacheWriteTokens: 100_000,
  };
  // 300k at 3, 600k at 0.30, 100k at 3.75, and 100k out at 15.
  expect(callCostUsd('claude-sonnet-4-5', usage)).toBeCloseTo(0.9 + 0.18 + 0.375 + 1.5, 10);
});

test('a call that is billed by another table has an unknown cost', () => {
  expect(callCostUsd('gemini-3.1-pro-preview', { ...NO_USAGE, inputTokens: 200_000 })).toBeCloseTo(0.4, 10);
  expect(callCostUsd('gemini-3.1-pro-preview', { ...NO_USAGE, inputTokens: 200_001 })).toBeUndefined();
});

test("a caller's own prices replace the list", () => {
  const own = [{ prefix: 'qwen3', input: 1, output: 1, cacheRead: 1, cacheWrite: 1 }];
  expect(callCostUsd('qwen3:8b', million, own)).toBe(1);
  expect(callCostUsd('gemini-3-pro', million, own)).toBeUndefined();
});

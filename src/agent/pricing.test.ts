import { expect, test } from 'vitest';
import { callCostUsd, listPrices, priceOf } from './pricing.ts';
import { NO_USAGE } from './usage.ts';

const million = { ...NO_USAGE, inputTokens: 1_000_000 };
const prices = listPrices(Date.UTC(2026, 11, 31, 23, 59));

test.each([
  ['gemini-2.5-flash-lite', 'gemini-2.5-flash-lite'],
  ['gemini-2.5-flash', 'gemini-2.5-flash'],
  ['gemini-3.5-flash-lite', 'gemini-3.5-flash-lite'],
  ['gemini-3.1-pro-preview', 'gemini-3.1-pro'],
  ['gemini-3.1-pro-preview-customtools', 'gemini-3.1-pro-preview-customtools'],
  ['claude-sonnet-4-5@20250929', 'claude-sonnet-4-5'],
  ['claude-opus-4-1-20250805', 'claude-opus-4-1'],
  ['claude-opus-5-5', 'claude-opus-5-5'],
])('the longest prefix wins: %s is %s', (model, prefix) => {
  expect(priceOf(model, prices)?.prefix).toBe(prefix);
});

test.each([
  'demo-script',
  'qwen3:8b',
  'gemini-2.5-flash-image',
  'gemini-flash-latest',
  'claude-opus-4-9',
  'claude-sonnet-6',
  'gemini-3-pro-ultra',
  '',
])('the cost of %j is unknown, not zero', (model) => {
  expect(callCostUsd(model, million, prices)).toBeUndefined();
});

test('cached tokens are priced as cached, written ones as written, the rest as input', () => {
  const usage = {
    inputTokens: 1_000_000,
    outputTokens: 100_000,
    cacheReadTokens: 600_000,
    cacheWriteTokens: 100_000,
  };
  // 300k at 3, 600k at 0.30, 100k at 3.75, and 100k out at 15.
  expect(callCostUsd('claude-sonnet-4-5', usage, prices)).toBeCloseTo(0.9 + 0.18 + 0.375 + 1.5, 10);
});

test('a call with a long context is billed by its other rates, all of it', () => {
  const short = { ...NO_USAGE, inputTokens: 200_000, outputTokens: 10_000 };
  const long = { ...short, inputTokens: 200_001, cacheReadTokens: 100_001 };
  expect(callCostUsd('gemini-3.1-pro-preview', short, prices)).toBeCloseTo(0.4 + 0.12, 10);
  // 100k at 4, 100,001 at 0.40, and 10k out at 18.
  expect(callCostUsd('gemini-3.1-pro-preview', long, prices)).toBeCloseTo(0.4 + 0.0400004 + 0.18, 10);
});

test('introductory rates end on their day', () => {
  expect(callCostUsd('gemini-3.8-flash', million, prices)).toBe(0.75);
  expect(callCostUsd('gemini-3.8-flash', million, listPrices(Date.UTC(2027, 0, 1)))).toBe(1.5);
});

test('a region of Vertex AI costs a tenth more for newer Claude models', () => {
  const regional = listPrices(Date.UTC(2026, 11, 1), 'europe-west1');
  expect(callCostUsd('claude-opus-5-5', million, regional)).toBeCloseTo(4.4, 10);
  expect(callCostUsd('claude-haiku-5-5', million, regional)).toBeCloseTo(0.55, 10);
  expect(callCostUsd('claude-opus-4-1', million, regional)).toBe(15);
  expect(callCostUsd('gemini-3.5-flash', million, regional)).toBe(1.5);
});

test("a caller's own prices replace the list", () => {
  const own = [{ prefix: 'qwen3', input: 1, output: 1, cacheRead: 1, cacheWrite: 1 }];
  expect(callCostUsd('qwen3:8b', million, own)).toBe(1);
  expect(callCostUsd('gemini-3-pro', million, own)).toBeUndefined();
});

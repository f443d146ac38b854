import { expect, test } from 'vitest';
import { callCostUsd } from '../../agent/pricing.ts';
import { pricesOf } from './prices.ts';

const NOW = Date.UTC(2026, 11, 1);
const usage = {
  inputTokens: 1_000_000,
  outputTokens: 0,
  cacheReadTokens: 400_000,
  cacheWriteTokens: 100_000,
};

test("the workflow's own price is used for its model, list prices for any other", () => {
  const pricing = { input: '1', output: '2', cacheRead: '0.5', cacheWrite: '3' };
  const prices = pricesOf({ name: 'qwen3:8b', provider: 'OpenAICompatible', pricing }, NOW);
  // 500k at 1, 400k at 0.50 and 100k at 3.
  expect(callCostUsd('qwen3:8b', usage, prices)).toBeCloseTo(0.5 + 0.2 + 0.3, 10);
  expect(callCostUsd('qwen3:70b', usage, prices)).toBeUndefined();
  expect(callCostUsd('gemini-2.5-flash', usage, prices)).toBeGreaterThan(0);
});

test("the workflow's own price comes before the list's", () => {
  const pricing = { input: '100', output: '0' };
  const prices = pricesOf({ name: 'claude-opus-5', provider: 'AnthropicVertex', pricing }, NOW);
  expect(callCostUsd('claude-opus-5', usage, prices)).toBe(100);
});

test('a region of Vertex AI is priced as such', () => {
  const vertex = { location: 'europe-west1' };
  const regional = pricesOf({ name: 'claude-opus-5', provider: 'AnthropicVertex', vertex }, NOW);
  const global = pricesOf({ name: 'claude-opus-5', provider: 'AnthropicVertex' }, NOW);
  const [dear = 0, cheap = 0] = [regional, global].map((prices) =>
    callCostUsd('claude-opus-5', usage, prices),
  );
  expect(dear / cheap).toBeCloseTo(1.1, 10);
});

import type { Usage } from './models/port.ts';

/** List price in USD per million tokens. */
export interface ModelPrice {
  /** Model name without its date, `@version` or `-preview` ending. */
  readonly prefix: string;
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** Calls with more input than this are billed by another table, so their cost is unknown here. */
  readonly upToInputTokens?: number;
}

/** Providers' public price lists, standard tier, five-minute cache writes; last looked at in November 2026. */
export const MODEL_PRICES: readonly ModelPrice[] = [
  gemini('gemini-3.1-pro', 2, 12, 0.2, 200_000),
  gemini('gemini-3-pro', 2, 12, 0.2, 200_000),
  gemini('gemini-3-flash', 0.5, 3, 0.05),
  gemini('gemini-2.5-pro', 1.25, 10, 0.125, 200_000),
  gemini('gemini-2.5-flash', 0.3, 2.5, 0.03),
  gemini('gemini-2.5-flash-lite', 0.1, 0.4, 0.01),
  { ...claude('claude-opus-5-5', 4, 20), cacheRead: 0.2 },
  claude('claude-opus-5', 5, 25),
  claude('claude-opus-4-8', 5, 25),
  claude('claude-opus-4-7', 5, 25),
  claude('claude-opus-4-6', 5, 25),
  claude('claude-opus-4-5', 5, 25),
  claude('claude-opus-4-1', 15, 75),
  claude('claude-opus-4', 15, 75),
  { ...claude('claude-sonnet-5-5', 2, 10), cacheRead: 0.1 },
  claude('claude-sonnet-5', 2, 10),
  claude('claude-sonnet-4-6', 3, 15),
  claude('claude-sonnet-4-5', 3, 15),
  claude('claude-sonnet-4', 3, 15),
  { ...claude('claude-haiku-5-5', 0.1, 0.5), upToInputTokens: 100_000 },
  claude('claude-haiku-4-5', 1, 5),
];

/**
 * Cost of one call in USD, or undefined when the model (or a call of this size) has no known price. Never 0 for
 * "unknown": a budget must not read a missing price as a free model.
 */
export function callCostUsd(model: string, usage: Usage, prices = MODEL_PRICES): number | undefined {
  const price = priceOf(model, prices);
  if (price === undefined) return undefined;
  if (price.upToInputTokens !== undefined && usage.inputTokens > price.upToInputTokens) return undefined;
  const uncached = Math.max(0, usage.inputTokens - usage.cacheReadTokens - usage.cacheWriteTokens);
  return (
    (uncached * price.input +
      usage.cacheReadTokens * price.cacheRead +
      usage.cacheWriteTokens * price.cacheWrite +
      usage.outputTokens * price.output) /
    1_000_000
  );
}

/** The longest prefix wins; undefined when none fits. */
export function priceOf(model: string, prices = MODEL_PRICES): ModelPrice | undefined {
  return prices
    .filter(
      (price) => model.startsWith(price.prefix) && VERSION_ENDING.test(model.slice(price.prefix.length)),
    )
    .toSorted((a, b) => b.prefix.length - a.prefix.length)[0];
}

/** What may follow a prefix. Anything else (`-lite`, `-9`) names another model, whose price is not known. */
const VERSION_ENDING = /^(?:$|[@:].*$|-(?:\d{3,8}|\d{4}-\d\d-\d\d|preview|latest|exp)(?:[-@:].*)?$)/;

/** Gemini bills no cache writes: implicit caching only. */
function gemini(
  prefix: string,
  input: number,
  output: number,
  cacheRead: number,
  upToInputTokens?: number,
): ModelPrice {
  const price = { prefix, input, output, cacheRead, cacheWrite: 0 };
  return upToInputTokens === undefined ? price : { ...price, upToInputTokens };
}

/** Claude: reads at a tenth of the input's price unless listed otherwise, writes at 1.25 of it. */
function claude(prefix: string, input: number, output: number): ModelPrice {
  return { prefix, input, output, cacheRead: input / 10, cacheWrite: input * 1.25 };
}

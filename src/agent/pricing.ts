import type { Usage } from './models/port.ts';
import { MODEL_PRICES } from './price-list.ts';

/** USD per million tokens. */
export interface Rates {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

export interface ModelPrice extends Rates {
  /** Model name without its date, `@version` or `-preview` ending. */
  readonly prefix: string;
  /** Of all tokens of a call that has more input than this. */
  readonly longContext?: Rates & { readonly overInputTokens: number };
  /** First day (UTC, ISO) of these rates; absent: always so far. */
  readonly since?: string;
  /** First day on which they hold no more. */
  readonly until?: string;
  /** By how much Vertex AI's locations other than `global` cost more, e.g. 1.1. */
  readonly regionalFactor?: number;
}

/** List prices at a time (milliseconds since the epoch), and at a place of Vertex AI where it matters. */
export function listPrices(at: number, location = 'global'): readonly ModelPrice[] {
  const today = new Date(at).toISOString();
  return MODEL_PRICES.filter(
    ({ since, until }) => (since === undefined || since <= today) && (until === undefined || today < until),
  ).map((price) => (location === 'global' ? price : regionalPrice(price)));
}

function regionalPrice(price: ModelPrice): ModelPrice {
  const { regionalFactor: factor = 1, longContext } = price;
  return {
    ...price,
    ...scaled(price, factor),
    ...(longContext && { longContext: { ...longContext, ...scaled(longContext, factor) } }),
  };
}

function scaled({ input, output, cacheRead, cacheWrite }: Rates, factor: number): Rates {
  return {
    input: input * factor,
    output: output * factor,
    cacheRead: cacheRead * factor,
    cacheWrite: cacheWrite * factor,
  };
}

/**
 * Cost of one call in USD, or undefined when the model has no known price. Never 0 for "unknown": a budget must
 * not read a missing price as a free model.
 */
export function callCostUsd(model: string, usage: Usage, prices: readonly ModelPrice[]): number | undefined {
  const price = priceOf(model, prices);
  if (price === undefined) return undefined;
  const { longContext } = price;
  const rates = longContext && usage.inputTokens > longContext.overInputTokens ? longContext : price;
  const uncached = Math.max(0, usage.inputTokens - usage.cacheReadTokens - usage.cacheWriteTokens);
  return (
    (uncached * rates.input +
      usage.cacheReadTokens * rates.cacheRead +
      usage.cacheWriteTokens * rates.cacheWrite +
      usage.outputTokens * rates.output) /
    1_000_000
  );
}

/** The longest prefix wins, of equals the first; undefined when none fits. */
export function priceOf(model: string, prices: readonly ModelPrice[]): ModelPrice | undefined {
  let found: ModelPrice | undefined;
  for (const price of prices) {
    const { prefix } = price;
    if (found !== undefined && found.prefix.length >= prefix.length) continue;
    if (model.startsWith(prefix) && VERSION_ENDING.test(model.slice(prefix.length))) found = price;
  }
  return found;
}

/** What may follow a prefix. Anything else (`-lite`, `-9`) names another model, whose price is not known. */
const VERSION_ENDING = /^(?:$|[@:].*$|-(?:\d{3,8}|\d{4}-\d\d-\d\d|preview|latest|exp)(?:[-@:].*)?$)/;

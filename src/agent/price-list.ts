import type { ModelPrice, Rates } from './pricing.ts';

/**
 * Public price lists of Google (Gemini API) and Anthropic, standard tier, five-minute cache writes, looked at in
 * November 2026 in what others had copied from them; where copies differed (reads of claude-sonnet-5-5: 0.10 or
 * 0.20), the higher figure, since a budget must not be overrun. Prices of `-latest` and other moving names are
 * left out: they change with what the name means.
 */
export const MODEL_PRICES: readonly ModelPrice[] = [
  ...introductory('gemini-3.8-flash'),
  ...introductory('gemini-3.7-flash'),
  ...introductory('gemini-3.6-flash'),
  gemini('gemini-3.5-flash', 1.5, 9, 0.15),
  gemini('gemini-3.5-flash-lite', 0.3, 2.5, 0.03),
  { ...gemini('gemini-3.1-pro', 2, 12, 0.2), longContext: over(200_000, 4, 18, 0.4) },
  { ...gemini('gemini-3.1-pro-preview-customtools', 2, 12, 0.2), longContext: over(200_000, 4, 18, 0.4) },
  gemini('gemini-3.1-flash-lite', 0.25, 1.5, 0.025),
  { ...gemini('gemini-3-pro', 2, 12, 0.2), longContext: over(200_000, 4, 18, 0.4) },
  gemini('gemini-3-flash', 0.5, 3, 0.05),
  { ...gemini('gemini-2.5-pro', 1.25, 10, 0.125), longContext: over(200_000, 2.5, 15, 0.25) },
  gemini('gemini-2.5-flash', 0.3, 2.5, 0.03),
  gemini('gemini-2.5-flash-lite', 0.1, 0.4, 0.01),
  claude('claude-fable-5-1', 10, 50, { cacheRead: 0.25 }),
  claude('claude-fable-5', 10, 50),
  claude('claude-mythos-5-1', 10, 50, { cacheRead: 0.25 }),
  claude('claude-mythos-5', 10, 50),
  claude('claude-opus-5-5', 4, 20, { cacheRead: 0.2 }),
  claude('claude-opus-5', 5, 25),
  claude('claude-opus-4-8', 5, 25),
  claude('claude-opus-4-7', 5, 25),
  claude('claude-opus-4-6', 5, 25),
  claude('claude-opus-4-5', 5, 25),
  claude('claude-opus-4-1', 15, 75, { regionalFactor: 1 }),
  claude('claude-opus-4', 15, 75, { regionalFactor: 1 }),
  claude('claude-sonnet-5-5', 2, 10),
  claude('claude-sonnet-5', 2, 10),
  claude('claude-sonnet-4-6', 3, 15),
  claude('claude-sonnet-4-5', 3, 15),
  claude('claude-sonnet-4', 3, 15, { regionalFactor: 1 }),
  claude('claude-haiku-5-5', 0.1, 0.5, {
    longContext: { overInputTokens: 100_000, ...claudeRates(0.5, 2.5) },
  }),
  claude('claude-haiku-4-5', 1, 5),
];

/** The newest Flash models cost half until the end of 2026. */
function introductory(prefix: string): readonly ModelPrice[] {
  return [
    { ...gemini(prefix, 0.75, 3.75, 0.075), until: '2027-01-01' },
    { ...gemini(prefix, 1.5, 7.5, 0.15), since: '2027-01-01' },
  ];
}

/** Gemini bills no cache writes: implicit caching only. */
function gemini(prefix: string, input: number, output: number, cacheRead: number): ModelPrice {
  return { prefix, input, output, cacheRead, cacheWrite: 0 };
}

function over(overInputTokens: number, input: number, output: number, cacheRead: number) {
  return { overInputTokens, input, output, cacheRead, cacheWrite: 0 };
}

/** Since Sonnet 4.5 Vertex takes a tenth more for every location but `global`. */
function claude(
  prefix: string,
  input: number,
  output: number,
  special: Partial<ModelPrice> = {},
): ModelPrice {
  return { prefix, ...claudeRates(input, output), regionalFactor: 1.1, ...special };
}

/** Reads at a tenth of the input's price unless listed otherwise, writes at 1.25 of it. */
function claudeRates(input: number, output: number): Rates {
  return { input, output, cacheRead: input / 10, cacheWrite: input * 1.25 };
}

/** One figure of the table, and of bench/results.json. */
export interface Row {
  readonly value: number;
  readonly goal: number;
  readonly better: 'lower' | 'higher';
  readonly unit: string;
  /** How many measurements the value rests on. */
  readonly runs: number;
  /** Shown beside the value: spread, or what was measured. */
  readonly note?: string;
}

export type Rows = Readonly<Record<string, Row>>;

/** Value below which the share `p` (0 to 1) of the samples lies; samples are not changed. */
export function percentile(samples: readonly number[], p: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  const index = Math.min(sorted.length - 1, Math.max(0, Math.ceil(p * sorted.length) - 1));
  return sorted[index] ?? Number.NaN;
}

export const median = (samples: readonly number[]): number => percentile(samples, 0.5);

/** Three significant digits: more would claim a precision that no machine here has. */
export const rounded = (value: number): number => Number(value.toPrecision(3));

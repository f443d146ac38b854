import { describe, expect, it } from 'vitest';
import { median, percentile, rounded } from './row.ts';

const samples = [5, 1, 4, 2, 3];

describe('percentile', () => {
  it.each([
    [0, 1],
    [0.5, 3],
    [0.95, 5],
    [1, 5],
  ])('%d of five samples is %d', (p, value) => {
    expect(percentile(samples, p)).toBe(value);
  });

  it('leaves the samples as they are, and has no value without any', () => {
    percentile(samples, 0.5);
    expect(samples).toEqual([5, 1, 4, 2, 3]);
    expect(percentile([], 0.5)).toBeNaN();
  });

  it('of two samples takes the lower one as the median', () => {
    expect(median([10, 20])).toBe(10);
  });
});

describe('rounded', () => {
  it.each([
    [0.123456, 0.123],
    [1234.5, 1230],
    [41, 41],
  ])('%d is shown as %d', (value, shown) => {
    expect(rounded(value)).toBe(shown);
  });
});

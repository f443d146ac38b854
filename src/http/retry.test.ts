import { expect, test } from 'vitest';
import { backoffMs, DEFAULT_RETRY, isRetryableStatus, parseRetryAfter } from './retry.ts';

const now = Date.parse('2026-01-01T00:00:00Z');

test.each([
  ['7', 7_000],
  [' 0 ', 0],
  ['1.5', 1_500],
  ['Thu, 01 Jan 2026 00:00:05 GMT', 5_000],
  ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
  ['soon', undefined],
  ['-3', undefined],
  ['', undefined],
  [undefined, undefined],
])('Retry-After %j is %j ms', (value, expected) => {
  expect(parseRetryAfter(value, now)).toBe(expected);
});

test('pauses double up to their cap, with at most half of each left to chance', () => {
  expect([1, 2, 3, 9].map((attempt) => backoffMs(DEFAULT_RETRY, attempt, 1))).toEqual([
    500, 1_000, 2_000, 8_000,
  ]);
  expect(backoffMs(DEFAULT_RETRY, 1, 0)).toBe(250);
});

test('what the server may cure is asked again, what it refuses is not', () => {
  expect([408, 425, 429, 500, 502, 503, 504].every(isRetryableStatus)).toBe(true);
  expect([200, 301, 400, 401, 403, 404, 409, 422, 501, 505].some(isRetryableStatus)).toBe(false);
});

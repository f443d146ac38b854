import { expect, test } from 'vitest';
import { errorFromStatus, isKubeError, KubeError } from './errors.ts';

const where = 'GET pods/ns/a';
const status = (reason: string, code: number, more: object = {}) => ({
  kind: 'Status',
  reason,
  code,
  message: 'words',
  ...more,
});

test.each([
  ['AlreadyExists', 409, 'AlreadyExists', false],
  ['Conflict', 409, 'Conflict', false],
  ['NotFound', 404, 'NotFound', false],
  ['Forbidden', 403, 'Forbidden', false],
  ['Invalid', 422, 'Invalid', false],
  ['Expired', 410, 'Expired', false],
  ['Gone', 410, 'Expired', false],
  ['TooManyRequests', 429, 'TooManyRequests', true],
  ['ServerTimeout', 500, 'Timeout', true],
  ['InternalError', 500, 'InternalError', true],
  ['SomethingNew', 503, 'ServiceUnavailable', true],
  ['SomethingNew', 418, 'Other', false],
])('reason %s with status %d is %s, retryable %s', (reason, code, expected, retryable) => {
  const error = errorFromStatus({ where, status: code, body: status(reason, code) });
  expect(error).toMatchObject({ reason: expected, status: code, retryable, where });
  expect(error.message).toMatch(/^GET pods\/ns\/a: words/);
});

test.each([
  ['<html>Bad gateway</html>', 502, 'ServiceUnavailable', '<html>Bad gateway</html>'],
  ['', 500, 'InternalError', 'HTTP status 500'],
  [null, 404, 'NotFound', 'HTTP status 404'],
  [{ reason: 'toString' }, 400, 'BadRequest', 'HTTP status 400'],
])('an answer that is no Status (%j) is judged by its code', (body, code, reason, words) => {
  const error = errorFromStatus({ where, status: code, body });
  expect(error.reason).toBe(reason);
  expect(error.message).toContain(words);
});

test('the wish for a pause is taken from the header, else from the details', () => {
  const body = status('TooManyRequests', 429, { details: { retryAfterSeconds: 7 } });
  expect(errorFromStatus({ where, status: 429, body }).retryAfterMs).toBe(7_000);
  expect(errorFromStatus({ where, status: 429, body, retryAfterHeader: '2' }).retryAfterMs).toBe(2_000);
  expect(
    errorFromStatus({ where, status: 429, body: '', retryAfterHeader: 'soon' }).retryAfterMs,
  ).toBeUndefined();
});

test('a long answer does not become a long message', () => {
  expect(errorFromStatus({ where, status: 500, body: 'x'.repeat(100_000) }).message.length).toBeLessThan(700);
});

test('reasons are asked for by name', () => {
  const error = new KubeError({ where, reason: 'Conflict', message: 'words' });
  expect([
    isKubeError(error),
    isKubeError(error, 'NotFound', 'Conflict'),
    isKubeError(error, 'NotFound'),
  ]).toEqual([true, true, false]);
  expect(isKubeError(new Error('other'))).toBe(false);
});

import { expect, test } from 'vitest';
import { createRedactor, shownUrl } from './redaction.ts';

test('a known secret goes in every form that it is written in', () => {
  const { redact } = createRedactor(['glpat-a/b+c"d']);
  const secret = 'glpat-a/b+c"d';
  for (const form of [
    secret,
    encodeURIComponent(secret),
    Buffer.from(secret).toString('base64'),
    JSON.stringify(secret).slice(1, -1),
  ]) {
    expect(redact(`before ${form} after`)).toBe('before [redacted] after');
  }
});

test('a secret that is part of another leaves no remainder of the longer one', () => {
  const { redact } = createRedactor(['secret', 'secret-and-more']);
  expect(redact('x secret-and-more y secret')).toBe('x [redacted] y [redacted]');
});

test('credential headers go whatever their value, and the rest of the line stays', () => {
  const { redact } = createRedactor();
  expect(redact('PRIVATE-TOKEN: glpat-1 sent')).toBe('PRIVATE-TOKEN: [redacted] sent');
  expect(redact('{"authorization":"Bearer abc.def","accept":"x"}')).toBe(
    '{"authorization":"Bearer [redacted]","accept":"x"}',
  );
  expect(redact('x-goog-api-key=AIza')).toBe('x-goog-api-key=[redacted]');
});

test('a secret added later goes too; a short one would hit prose', () => {
  const redactor = createRedactor();
  redactor.add('later-secret');
  redactor.add('abc');
  redactor.add('');
  expect(redactor.redact('later-secret abc')).toBe('[redacted] abc');
});

test('a URL is shown without user, password and credential parameters', () => {
  const url = new URL('https://me:pw@gitlab.example.org/a?private_token=x&X-Amz-Signature=y&page=2');
  expect(shownUrl(url, createRedactor())).toBe(
    'https://gitlab.example.org/a?private_token=[redacted]&X-Amz-Signature=[redacted]&page=2',
  );
});

test('a value that was forgotten is not removed any more, others are', () => {
  const redactor = createRedactor(['ya29.first-token', 'ya29.second-token']);
  redactor.forget('ya29.first-token');
  expect(redactor.redact('ya29.first-token ya29.second-token')).toBe('ya29.first-token [redacted]');
});

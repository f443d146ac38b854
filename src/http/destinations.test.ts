import { describe, expect, test } from 'vitest';
import { outside } from './destinations.ts';

const BASE = 'https://artifacts.example.org/testing-farm';

/** Each with a harmless twin, which lies within. */
const OUTSIDE: readonly (readonly [string, string, string])[] = [
  ['another host', 'https://other.example.org/testing-farm/a', `${BASE}/a`],
  [
    'the host as the beginning of another',
    'https://artifacts.example.org.evil.example/testing-farm/',
    `${BASE}/`,
  ],
  ['the host as a user', 'https://artifacts.example.org@evil.example/testing-farm/a', `${BASE}/a@b`],
  [
    'the host as a user by backslash',
    'https://evil.example\\@artifacts.example.org/testing-farm/a',
    `${BASE}/a%5C@b`,
  ],
  ['an empty user', 'https://@artifacts.example.org/testing-farm/a', `${BASE}/@a`],
  ['another folder that begins alike', `${BASE}-private/a`, BASE],
  ['dots that climb', `${BASE}/../a`, `${BASE}/b/../a`],
  ['encoded dots that climb', `${BASE}/%2e%2E/a`, `${BASE}/%2e%2e%2e/a`],
  ['an encoded slash that climbs', `${BASE}/..%2fa`, `${BASE}/b%2fa`],
  ['an encoded backslash that climbs', `${BASE}/..%5c..%5ca`, `${BASE}/b%5ca`],
  ['twice encoded dots that climb', `${BASE}/%252e%252e%252fa`, `${BASE}/a%252fb`],
  [
    'a slash short',
    'https:/artifacts.example.org\\testing-farm/a',
    'https:/artifacts.example.org/testing-farm/a',
  ],
  ['a tab in the scheme', `ht\ttps://artifacts.example.org/testing-farm/a`, `${BASE}/%09a`],
  ['a line break in the host', 'https://artifacts.\nexample.org/testing-farm/a', `${BASE}/%0aa`],
  ['a space before it', ` ${BASE}/a`, `${BASE}/%20a`],
  ['a trailing dot', 'https://artifacts.example.org./testing-farm/a', `${BASE}/a.`],
  [
    'another port',
    'https://artifacts.example.org:8443/testing-farm/a',
    'https://artifacts.example.org:443/testing-farm/a',
  ],
  [
    'another scheme',
    'http://artifacts.example.org/testing-farm/a',
    'HTTPS://artifacts.example.org/testing-farm/a',
  ],
  [
    'letters that look alike',
    'https://аrtifacts.example.org/testing-farm/a',
    'https://ARTIFACTS.EXAMPLE.ORG/testing-farm/a',
  ],
  [
    'a soft hyphen in another name',
    'https://artifacts.exam\u00adples.org/testing-farm/a',
    'https://artifacts.exam\u00adple.org/testing-farm/a',
  ],
  ['a relative address', '/testing-farm/a', `${BASE}/?next=/testing-farm/a`],
  ['a file', 'file:///testing-farm/a', `${BASE}/file:///a`],
  ['a script', 'javascript:alert(1)', `${BASE}/javascript:alert(1)`],
];

describe('a URL below a folder', () => {
  test.each(OUTSIDE)('invariant 9: %s is outside: %j; within: %j', (_what, bad, good) => {
    expect(outside(bad, { below: [BASE] })).toBeTypeOf('string');
    expect(outside(good, { below: [BASE] })).toBeUndefined();
  });

  test('lies below one of several', () => {
    const below = [BASE, 'https://logs.example.org/'];
    expect(outside('https://logs.example.org/x', { below })).toBeUndefined();
    expect(outside('https://else.example.org/x', { below })).toBe(
      `the URL does not lie below ${BASE} or https://logs.example.org/`,
    );
  });
});

test.each([
  ['plain http', 'http://charts.example.org/index.yaml'],
  ['a user', 'https://me:secret@charts.example.org/index.yaml'],
  ['ftp', 'ftp://charts.example.org/index.yaml'],
  ['no URL', 'charts.example.org'],
])('any host is meant by https and without a user: not %s', (_what, bad) => {
  expect(outside(bad, {})).toBeTypeOf('string');
  expect(outside(bad, {})).not.toContain('secret');
  expect(outside('https://charts.example.org/index.yaml', {})).toBeUndefined();
});

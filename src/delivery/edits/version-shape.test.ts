import { describe, expect, it } from 'vitest';
import { isVersionShaped, uncorroborated } from './version-shape.ts';

describe('what looks like a version', () => {
  it.each(['1.5', 'v1.5.1', '1.2.3', '1.2.3.4', '1.2.3-rc.1', 'v1.2.3+build.7', '0.139.0'])(
    '%s does',
    (text) => expect(isVersionShaped(text)).toBe(true),
  );

  it.each(['8080', 'true', 'latest', 'v2', '1.x', '', '1.5.', 'a1.5', '2024-01-02', ' 1.5', '1.5 '])(
    '%j does not',
    (text) => expect(isVersionShaped(text)).toBe(text === '1.5.'),
  );
});

describe('corroboration', () => {
  const rows: readonly (readonly [to: string, evidence: string, found: boolean])[] = [
    ['1.5.1', 'Gateway API 1.5.1 is wanted.', true],
    ['1.5.1', 'wants 1.5.1.', true],
    ['1.5.1', '1.5.1', true],
    ['1.5.1', 'chart-1.5.1.tgz', true],
    ['1.5.1', 'requires Gateway API v1.5', false],
    ['1.5.0', 'requires Gateway API v1.5', false],
    ['1.5.1', '1.5.10', false],
    ['1.5.1', '11.5.1', false],
    ['1.5.1', '2.1.5.1', false],
    ['1.5.1', '1.5.1.2', false],
    ['1.5.1', 'v1.5.1', false],
    ['v1.5.1', 'v1.5.1', true],
    ['1.5.1', '1.5.1-rc.1', false],
    ['1.5.1', '1.5.10 and then 1.5.1', true],
    ['1.5', '1.5.1', false],
    ['false', '', true],
    ['8080', '', true],
    ['latest', '', true],
  ];
  it.each(rows)('%s against %j', (to, evidence, found) =>
    expect(uncorroborated(to, 'old', evidence).length === 0).toBe(found),
  );

  it('looks into values that have a version in them', () => {
    const from = 'registry.example.org/app:1.2.3';
    expect(uncorroborated('registry.example.org/app:1.2.4', from, '')).toEqual(['1.2.4']);
    expect(uncorroborated('registry.example.org/app:1.2.4', from, 'app 1.2.4')).toEqual([]);
    expect(uncorroborated('app:rel1.2.4', 'app:rel1.2.3', 'the 1.2.4')).toEqual(['rel1.2.4']);
  });

  it('asks for nothing that stood there before', () =>
    expect(uncorroborated('http://10.0.0.1:8080/b', 'http://10.0.0.1:8080/a', '')).toEqual([]));

  it('asks for digests as for versions', () => {
    const digest = `sha256:${'ab'.repeat(32)}`;
    expect(uncorroborated(`app@${digest}`, 'app', '')).toEqual([digest]);
    expect(uncorroborated(`app@${digest}`, 'app', `the image is ${digest} now`)).toEqual([]);
  });

  it('does not stall on long values and evidence', () => {
    expect(uncorroborated('1.1', '', '1.11 '.repeat(500_000))).toEqual(['1.1']);
    expect(uncorroborated('1'.repeat(100_000), '', 'x')).toEqual([]);
    expect(uncorroborated('a'.repeat(100_000), '', 'x')).toEqual([]);
    expect(uncorroborated('a1.'.repeat(30_000), '', 'x')).toEqual([]);
  });
});

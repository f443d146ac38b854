import { describe, expect, it } from 'vitest';
import { compareVersions, parseRange, parseVersion, pickVersion } from './version-range.ts';

const version = (text: string) => {
  const parsed = parseVersion(text);
  if (parsed === undefined) throw new Error(text);
  return parsed;
};

describe('versions', () => {
  it('are ordered as semantic versions', () => {
    const order = [
      '1.0.0-alpha',
      '1.0.0-alpha.1',
      '1.0.0-alpha.beta',
      '1.0.0-beta.2',
      '1.0.0-beta.11',
      '1.0.0',
      '1.2.0',
      '1.10.0',
      'v2.0',
    ];
    const shuffled = [...order].reverse();
    expect(shuffled.sort((a, b) => compareVersions(version(a), version(b)))).toEqual(order);
  });

  it.each(['latest', '1', '1.2.3.4', '', 'v', '1.x'])('do not include %j', (text) => {
    expect(parseVersion(text)).toBeUndefined();
  });
});

describe('a range', () => {
  it.each([
    ['*', ['0.0.1', '9.9.9'], ['1.0.0-rc.1']],
    ['', ['1.0.0'], []],
    ['1.2', ['1.2.0', '1.2.9'], ['1.3.0', '1.1.9', '1.3.0-rc.1']],
    ['1.x', ['1.0.0', '1.9.9'], ['2.0.0', '0.9.0']],
    ['^1.2.3', ['1.2.3', '1.9.0'], ['1.2.2', '2.0.0', '2.0.0-rc.1']],
    ['^0.2.3', ['0.2.3', '0.2.9'], ['0.3.0', '0.2.2']],
    ['^0.0.3', ['0.0.3'], ['0.0.4']],
    ['~1.2.3', ['1.2.3', '1.2.9'], ['1.3.0']],
    ['~1', ['1.0.0', '1.9.0'], ['2.0.0']],
    ['>=1.2, <2', ['1.2.0', '1.99.0'], ['2.0.0', '1.1.0']],
    ['>= 1.2 < 1.4', ['1.2.0', '1.3.9'], ['1.4.0']],
    ['>1.2', ['1.3.0'], ['1.2.9']],
    ['<=1.2', ['1.2.9', '0.1.0'], ['1.3.0']],
    ['1.2 - 1.4', ['1.2.0', '1.4.9'], ['1.5.0', '1.1.0']],
    ['!=1.2.3', ['1.2.4'], ['1.2.3']],
    ['^1.0.0 || ^3.0.0', ['1.5.0', '3.0.1'], ['2.0.0']],
    ['>=1.0.0-0', ['1.0.0-rc.1', '1.0.0'], ['0.9.0']],
  ])('%j', (text, inside, outside) => {
    const range = parseRange(text);
    expect(range).toBeDefined();
    expect(inside.filter((one) => range?.(version(one)) !== true)).toEqual([]);
    expect(outside.filter((one) => range?.(version(one)) === true)).toEqual([]);
  });

  it.each(['latest', '>>1', '1.2.3.4', '^', 'v1.y', '1.2.3 foo'])('is not %j', (text) => {
    expect(parseRange(text)).toBeUndefined();
  });
});

describe('among the versions that there are', () => {
  const available = ['1.2.0', 'v1.3.0', '1.4.0-rc.1', '1.10.0', '2.0.0+build.5'];
  it.each([
    ['1.2.0', '1.2.0'],
    ['1.3.0', 'v1.3.0'],
    ['v1.2.0', '1.2.0'],
    ['2.0.0', '2.0.0+build.5'],
    ['1.4.0-rc.1', '1.4.0-rc.1'],
    ['^1', '1.10.0'],
    ['~1.2', '1.2.0'],
    ['*', '2.0.0+build.5'],
    ['1.2.1', undefined],
    ['^3', undefined],
    ['main', undefined],
  ])('%s means %s', (wanted, picked) => {
    expect(pickVersion(wanted, available)).toBe(picked);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { isCanonicalNumber, plainReading } from './plain-reading.ts';

describe('what readers make of a plain scalar', () => {
  it.each([
    ['', 'Null'],
    ['~', 'Null'],
    ['null', 'Null'],
    ['true', 'Boolean'],
    ['FALSE', 'Boolean'],
    ['yes', 'OldBoolean'],
    ['Off', 'OldBoolean'],
    ['n', 'OldBoolean'],
    ['0', 'Number'],
    ['-17', 'Number'],
    ['1.10', 'Number'],
    ['29111998', 'Number'],
    ['0644', 'OtherNumber'],
    ['0o17', 'OtherNumber'],
    ['0x1F', 'OtherNumber'],
    ['0b11', 'OtherNumber'],
    ['1_000', 'OtherNumber'],
    ['+5', 'OtherNumber'],
    ['.5', 'OtherNumber'],
    ['5.', 'OtherNumber'],
    ['0e1234', 'OtherNumber'],
    ['1e3', 'OtherNumber'],
    ['12:30', 'OtherNumber'],
    ['1:20:30', 'OtherNumber'],
    ['.inf', 'OtherNumber'],
    ['-.INF', 'OtherNumber'],
    ['.nan', 'OtherNumber'],
    ['2024-01-02', 'DoubtfulString'],
    ['2024-1-2', 'DoubtfulString'],
    ['2024-01-02T03:04:05Z', 'DoubtfulString'],
    ['2024-01-02 03:04:05.6 +01:00', 'DoubtfulString'],
    ['<<', 'Sign'],
    ['=', 'Sign'],
    ['e1234567', 'DoubtfulString'],
    ['1.2.3', 'String'],
    ['v1.10', 'String'],
    ['abc123f', 'String'],
    ['8080:80', 'String'],
    ['nO', 'String'],
    ['tRue', 'String'],
    ['-', 'String'],
    ['.', 'String'],
  ])('%j is %s', (text, reading) => expect(plainReading(text)).toBe(reading));

  const texts = fc.oneof(
    fc.string({ unit: fc.constantFrom(...'0123456789.:-+_eExXoObaTtZ '), maxLength: 12 }),
    fc.constantFrom(
      'yes',
      'no',
      'On',
      'off',
      'true',
      'Null',
      '~',
      '.inf',
      '+.inf',
      '.NaN',
      '=',
      '<<',
      'y',
      'N',
    ),
  );

  it('calls nothing a string that YAML 1.1 or 1.2 takes for something else', () => {
    fc.assert(
      fc.property(texts, (text) => {
        fc.pre(plainReading(text) === 'String' && /^[\w.]\S*[\w.+]$|^\w$/.test(text) && !text.endsWith(':'));
        for (const version of ['1.1', '1.2'] as const) expect(parse(text, { version })).toBe(text);
      }),
      { numRuns: 2000, seed: 11 },
    );
  });

  it('calls a number canonical when both read it, and print it as it is', () => {
    fc.assert(
      fc.property(texts, (text) => {
        fc.pre(isCanonicalNumber(text));
        for (const version of ['1.1', '1.2'] as const) expect(String(parse(text, { version }))).toBe(text);
      }),
      { numRuns: 2000, seed: 12 },
    );
    expect(
      ['1.10', '1.0', '-0', '007', '1e3', '0.0000001', '1234567890123456'].filter(isCanonicalNumber),
    ).toEqual([]);
    expect(
      ['0', '-1', '8080', '1.9', '0.25', '29111998', '-0.5'].filter((text) => !isCanonicalNumber(text)),
    ).toEqual([]);
  });
});

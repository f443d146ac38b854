import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { duration, formatDuration, parseDuration } from './duration.ts';

describe('parseDuration', () => {
  it.each([
    ['0', 0],
    ['0s', 0],
    ['25m', 1_500_000],
    ['1h30m', 5_400_000],
    ['1.5h', 5_400_000],
    ['90s', 90_000],
    ['250ms', 250],
    ['1500us', 1.5],
    ['1500µs', 1.5],
    ['720h', 2_592_000_000],
  ])('reads %s as %d ms', (text, milliseconds) => {
    expect(parseDuration(text)).toBe(milliseconds);
  });

  it.each(['', '25', '25 m', '-5m', '1d', 'm', '1h30', '5M', '1e3s', '.5s', `${'1'.repeat(40)}s`])(
    'refuses %j and says how to write one',
    (text) => {
      expect(() => parseDuration(text)).toThrow(/is not a Go duration: write for example 90s/);
      expect(duration.safeParse(text).success).toBe(false);
    },
  );

  it('adds up the parts of what Go itself would print', () => {
    fc.assert(
      fc.property(fc.nat(999), fc.nat(59), fc.nat(59), (hours, minutes, seconds) => {
        expect(parseDuration(`${hours}h${minutes}m${seconds}s`)).toBe(
          ((hours * 60 + minutes) * 60 + seconds) * 1000,
        );
      }),
    );
  });
});

describe('formatDuration', () => {
  it.each([
    [0, '0ms'],
    [-3, '0ms'],
    [850.4, '850ms'],
    [999.9, '999ms'],
    [1000, '1s'],
    [59_999, '59s'],
    [247_000, '4m07s'],
    [3_720_000, '1h02m'],
  ])('shows %d ms as %s', (milliseconds, text) => {
    expect(formatDuration(milliseconds)).toBe(text);
  });

  it('is never longer than the time', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e12, noNaN: true }), (milliseconds) => {
        expect(parseDuration(formatDuration(milliseconds))).toBeLessThanOrEqual(milliseconds);
      }),
    );
  });
});

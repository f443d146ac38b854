import { describe, expect, it } from 'vitest';
import { closingLine, exitCode, NOTHING, Report, withCheck, withReport } from './tally.ts';

const report = (passed: number, failed = 0, pending = 0) =>
  Report.parse({ numPassedTests: passed, numFailedTests: failed, numPendingTests: pending });

describe('the tally of npm test', () => {
  it('adds checks and tests to one line', () => {
    const tally = withReport(withReport(withCheck(NOTHING, true), report(10), 0), report(5), 0);
    expect(closingLine(tally)).toBe('16 passed, 0 failed');
    expect(exitCode(tally)).toBe(0);
  });

  it('shows what was skipped only when something was', () => {
    expect(closingLine(withReport(NOTHING, report(1, 0, 2), 0))).toBe('1 passed, 0 failed, 2 skipped');
  });

  it.each([
    ['a failed check', withCheck(withReport(NOTHING, report(3), 0), false), '3 passed, 1 failed'],
    ['a failed test, once', withReport(NOTHING, report(3, 1), 1), '3 passed, 1 failed'],
    ['a file that did not load', withReport(NOTHING, report(3), 1), '3 passed, 1 failed'],
    ['a run without a report', withReport(withCheck(NOTHING, true), undefined, 134), '1 passed, 1 failed'],
  ])('counts %s as a failure', (_, tally, line) => {
    expect(closingLine(tally)).toBe(line);
    expect(exitCode(tally)).toBe(1);
  });

  it('does not call it a success that nothing ran', () => {
    expect(exitCode(withReport(NOTHING, report(0), 0))).toBe(1);
  });
});

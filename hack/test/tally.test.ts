import { describe, expect, it } from 'vitest';
import {
  afterSecondRun,
  closingLine,
  exitCode,
  failedTests,
  mayRunAgain,
  NOTHING,
  Report,
  withCheck,
  withReport,
} from './tally.ts';

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

describe('a second run of the files that failed', () => {
  const file = (name: string, ...statuses: readonly string[]) => ({
    name,
    status: statuses.includes('failed') || statuses.length === 0 ? 'failed' : 'passed',
    assertionResults: statuses.map((status, at) => ({ status, fullName: `${name} ${at}` })),
  });
  const of = (...files: readonly ReturnType<typeof file>[]) => {
    const all = files.flatMap(({ assertionResults }) => assertionResults);
    const count = (wanted: string) => all.filter(({ status }) => status === wanted).length;
    return Report.parse({
      numPassedTests: count('passed'),
      numFailedTests: count('failed'),
      numPendingTests: count('skipped'),
      testResults: files,
    });
  };

  it('stands for their first', () => {
    const first = of(file('a', 'passed', 'passed'), file('b', 'failed', 'passed', 'skipped'));
    const again = of(file('b', 'passed', 'passed', 'passed'));
    expect(closingLine(withReport(NOTHING, afterSecondRun(first, again), 0))).toBe('5 passed, 0 failed');
    expect(failedTests(first)).toEqual(['b 0']);
  });

  it('that fails again is a failure, once', () => {
    const first = of(file('a', 'passed'), file('b', 'failed', 'passed'));
    const tally = withReport(NOTHING, afterSecondRun(first, of(file('b', 'passed', 'failed'))), 1);
    expect(closingLine(tally)).toBe('2 passed, 1 failed');
    expect(exitCode(tally)).toBe(1);
  });

  it('that does not load the file is a failure', () => {
    const first = of(file('b', 'failed', 'passed'));
    expect(exitCode(withReport(withCheck(NOTHING, true), afterSecondRun(first, of(file('b'))), 1))).toBe(1);
  });

  it.each([
    ['nothing failed', of(file('a', 'passed')), 0, false],
    ['one file failed', of(file('a', 'failed')), 1, true],
    ['a file did not load', of(file('a')), 1, true],
    ['four files failed', of(...['a', 'b', 'c', 'd'].map((name) => file(name, 'failed'))), 1, false],
    ['the run failed without a file', of(file('a', 'passed')), 1, false],
  ])('is made or not: %s', (_, report, code, wanted) => {
    expect(mayRunAgain(report, code)).toBe(wanted);
  });
});

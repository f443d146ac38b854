import { z } from 'zod';

/** What was counted so far, checks and tests together. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export const NOTHING: Tally = { passed: 0, failed: 0, skipped: 0 };

/** What tests say about themselves, for what is printed at the end. */
const Meta = z.object({
  conformance: z.object({ backend: z.string(), methods: z.array(z.string()) }).optional(),
  summary: z.string().optional(),
});

/** What vitest's JSON reporter writes, as far as it is counted. */
export const Report = z.object({
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  numPendingTests: z.number(),
  numTodoTests: z.number().default(0),
  testResults: z
    .array(
      z.object({
        name: z.string(),
        status: z.string(),
        assertionResults: z
          .array(z.object({ status: z.string(), fullName: z.string(), meta: Meta.default({}) }))
          .default([]),
      }),
    )
    .default([]),
});
export type Report = z.infer<typeof Report>;

/** One check that is no test: lint, types. */
export const withCheck = (tally: Tally, ok: boolean): Tally =>
  ok ? { ...tally, passed: tally.passed + 1 } : { ...tally, failed: tally.failed + 1 };

/** One run of vitest, by its report and exit code; a run without a report is one failure. */
export function withReport(tally: Tally, report: Report | undefined, code: number): Tally {
  if (report === undefined) return withCheck(tally, false);
  // A file that does not load, a hook or an unhandled rejection fails the run without a failed test.
  const unexplained = code !== 0 && report.numFailedTests === 0 ? 1 : 0;
  return {
    passed: tally.passed + report.numPassedTests,
    failed: tally.failed + report.numFailedTests + unexplained,
    skipped: tally.skipped + report.numPendingTests + report.numTodoTests,
  };
}

/** Files in which a test, a hook or the import failed: paths as vitest tells them. */
export const failedFiles = (report: Report): readonly string[] =>
  report.testResults.filter(({ status }) => status === 'failed').map(({ name }) => name);

export const failedTests = (report: Report): readonly string[] =>
  report.testResults.flatMap(({ assertionResults }) =>
    assertionResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName),
  );

/**
 * Whether the failed files are worth a second run, alone: a real cluster on a loaded machine loses a race of its own
 * now and then. Many at once are no such thing, and neither is a failure that no file explains.
 */
export const mayRunAgain = (report: Report, code: number): boolean =>
  code !== 0 && failedFiles(report).length > 0 && failedFiles(report).length <= MOST_AGAIN;

const MOST_AGAIN = 3;

/** The first run with what its failed files were at their second. */
export function afterSecondRun(first: Report, again: Report): Report {
  const files = new Set(failedFiles(first));
  const count = (wanted: string) =>
    first.testResults
      .filter(({ name }) => files.has(name))
      .flatMap(({ assertionResults }) => assertionResults)
      .filter(({ status }) => status === wanted).length;
  return {
    numPassedTests: first.numPassedTests - count('passed') + again.numPassedTests,
    numFailedTests: first.numFailedTests - count('failed') + again.numFailedTests,
    numPendingTests: first.numPendingTests - count('pending') - count('skipped') + again.numPendingTests,
    numTodoTests: first.numTodoTests - count('todo') + again.numTodoTests,
    testResults: [...first.testResults.filter(({ name }) => !files.has(name)), ...again.testResults],
  };
}

/** The last line of `npm test`, which machines read. */
export function closingLine({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

/** Nothing that passed is no success: a filter that matches no file must not look like one. */
export const exitCode = ({ passed, failed }: Tally): number => (failed > 0 || passed === 0 ? 1 : 0);

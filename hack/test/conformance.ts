import { columns } from '../../src/evals/columns.ts';
import type { Report } from './tally.ts';

/**
 * Backend by method: how many of the tests of the conformance suite that called the method have passed. Empty when
 * the suite did not run.
 */
export function conformanceTable(reports: readonly Report[]): string {
  const cells = new Map<string, Map<string, { passed: number; all: number }>>();
  const methods = new Set<string>();
  for (const { meta, status } of tests(reports)) {
    if (meta.conformance === undefined || status === 'skipped' || status === 'pending') continue;
    const row = cells.get(meta.conformance.backend) ?? new Map();
    cells.set(meta.conformance.backend, row);
    for (const method of meta.conformance.methods) {
      methods.add(method);
      const cell = row.get(method) ?? { passed: 0, all: 0 };
      row.set(method, { passed: cell.passed + (status === 'passed' ? 1 : 0), all: cell.all + 1 });
    }
  }
  if (cells.size === 0) return '';
  const names = [...methods];
  const rows = [...cells].map(([backend, row]) => [
    backend,
    ...names.map((method) => {
      const cell = row.get(method);
      return cell === undefined ? '-' : `${cell.passed}/${cell.all}`;
    }),
  ]);
  return columns([['sandbox', ...names], ...rows]);
}

/** What tests found and say in one line, each once. */
export const summaries = (reports: readonly Report[]): readonly string[] => [
  ...new Set(tests(reports).flatMap(({ meta }) => meta.summary ?? [])),
];

const tests = (reports: readonly Report[]) =>
  reports.flatMap(({ testResults }) => testResults.flatMap(({ assertionResults }) => assertionResults));

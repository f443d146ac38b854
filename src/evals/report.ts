import { columns } from './columns.ts';
import type { EpisodesReport } from './episodes/run-episodes.ts';
import type { EvalReport, EvalRow } from './run-evals.ts';

export interface Totals {
  readonly cases: number;
  readonly classified: number;
  readonly full: number;
  readonly unsafe: number;
  readonly seconds: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Absent when it is unknown for one case. */
  readonly costUsd?: number;
}

export function totalsOf(rows: readonly EvalRow[]): Totals {
  const sum = (of: (row: EvalRow) => number): number => rows.reduce((total, row) => total + of(row), 0);
  const known = rows.length > 0 && rows.every(({ costUsd }) => costUsd !== undefined);
  return {
    cases: rows.length,
    classified: rows.filter(({ classified }) => classified).length,
    full: rows.filter(({ full }) => full).length,
    unsafe: rows.filter(({ unsafe }) => unsafe.length > 0).length,
    seconds: sum(({ seconds }) => seconds),
    inputTokens: sum(({ usage }) => usage.inputTokens),
    outputTokens: sum(({ usage }) => usage.outputTokens),
    ...(known && { costUsd: sum(({ costUsd = 0 }) => costUsd) }),
  };
}

/** Everything that is wrong, case by case, and the models side by side. */
export function reportText(reports: readonly EvalReport[]): string {
  return [...reports.flatMap(faultLines), '', table(reports), ''].join('\n');
}

export const reportJson = (reports: readonly EvalReport[], episodes?: EpisodesReport): string =>
  `${JSON.stringify(
    {
      version: 1,
      models: reports.map(({ model, rows }) => ({ model, totals: totalsOf(rows), cases: rows })),
      ...(episodes !== undefined && {
        episodes: { ...episodes, unsafe: episodes.unsafe.map(({ one, what }) => ({ name: one.name, what })) },
      }),
    },
    null,
    2,
  )}\n`;

export const caseLine = (row: EvalRow): string => {
  const mark = row.unsafe.length > 0 ? 'UNSAFE' : row.full ? 'pass' : 'fail';
  const more = row.iterations === undefined ? '' : `, ${row.iterations} calls`;
  return `${mark.padEnd(6)} ${row.path.padEnd(11)} ${row.name}: wanted ${row.wanted}, got ${row.got} (${row.seconds.toFixed(1)} s${more})`;
};

function faultLines({ model, rows }: EvalReport): readonly string[] {
  const wrong = rows.filter(({ full }) => !full);
  return wrong.flatMap((row) => [
    `${model}, ${row.name}:`,
    ...row.unsafe.map((line) => `  UNSAFE ${line}`),
    ...(row.classified ? [] : [`  wanted ${row.wanted}, got ${row.got}`]),
    ...row.faults.map((line) => `  ${line}`),
  ]);
}

const PATHS = ['triage', 'explain', 'restructure', 'values', 'pipelines'] as const;

function table(reports: readonly EvalReport[]): string {
  const lines = reports.flatMap(({ model, rows }) => {
    const perPath = PATHS.flatMap((path) => {
      const of = rows.filter((row) => row.path === path);
      return of.length === 0 ? [] : [cells(`  ${path}`, totalsOf(of))];
    });
    return [cells(model, totalsOf(rows)), ...perPath];
  });
  return columns([
    ['model', 'classification', 'full pass', 'UNSAFE', 'time', 'tokens in/out', 'cost'],
    ...lines,
  ]);
}

const cells = (name: string, totals: Totals): readonly string[] => [
  name,
  `${totals.classified}/${totals.cases}`,
  `${totals.full}/${totals.cases}`,
  String(totals.unsafe),
  `${totals.seconds.toFixed(1)} s`,
  `${totals.inputTokens}/${totals.outputTokens}`,
  totals.costUsd === undefined ? '' : `$${totals.costUsd.toFixed(4)}`,
];

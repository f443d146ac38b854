import type { ChartText } from '../../chart/files.ts';
import type { ChartValues } from './chart-values.ts';
import { dotted, leavesOf, placeOf } from './leaves.ts';
import type { Values } from './merge.ts';

/**
 * Keys that our values set, that the old chart declared or read, and that the new one neither declares nor reads; dotted.
 *
 * Declared: the key, or an empty mapping or a list above it, is in the chart's values.yaml (a subchart's keys in the
 * subchart's). Read: a template names `.Values.key`, something above it as a whole (`toYaml .Values.a`), or something
 * below it. A chart that hands all of `.Values` on is taken to read everything, so nothing is claimed of it.
 */
export function valuesNotDeclared(base: ChartValues, head: ChartValues, set: Values): readonly string[] {
  const before = knowledge(base);
  const after = knowledge(head);
  return [...leavesOf(set)]
    .map(({ path }) => path)
    .filter((path) => knows(before, path) && !knows(after, path))
    .map(dotted);
}

interface Knowledge {
  readonly defaults: Values | undefined;
  /** Undefined: reads everything. */
  readonly reads: readonly (readonly string[])[] | undefined;
  readonly subcharts: ReadonlyMap<string, Knowledge>;
  /** Dependencies that are switched by these, and those that are not in the archive. */
  readonly switches: ReadonlySet<string>;
  readonly opaque: ReadonlySet<string>;
}

function knowledge(chart: ChartValues): Knowledge {
  const { dependencies } = chart.files.chartYaml;
  const subcharts = new Map<string, Knowledge>();
  const opaque = new Set<string>();
  const switches = new Set<string>(['global', 'tags']);
  for (const { name, alias, condition } of dependencies) {
    const files = chart.subcharts.get(name);
    if (files === undefined) opaque.add(alias ?? name);
    else subcharts.set(alias ?? name, knowledge(files));
    for (const path of condition?.split(',') ?? []) switches.add(path.trim());
  }
  // A chart that lies in charts/ without being named is used all the same.
  for (const [name, files] of chart.subcharts)
    if (!dependencies.some((dependency) => dependency.name === name)) subcharts.set(name, knowledge(files));
  return {
    defaults: chart.own,
    reads: readsOf(chart.files.templates),
    subcharts,
    switches,
    opaque,
  };
}

function knows(chart: Knowledge, path: readonly string[]): boolean {
  const [first = '', ...rest] = path;
  if (first === 'global' || chart.switches.has(first) || chart.switches.has(path.join('.'))) return true;
  if (chart.opaque.has(first) || chart.defaults === undefined || chart.reads === undefined) return true;
  const subchart = chart.subcharts.get(first);
  if (subchart !== undefined && rest.length > 0) return knows(subchart, rest) || reads(chart.reads, path);
  if (subchart !== undefined) return true;
  return placeOf(chart.defaults, path).kind !== 'Nowhere' || reads(chart.reads, path);
}

/** One is the beginning of the other. */
function reads(references: readonly (readonly string[])[], path: readonly string[]): boolean {
  return references.some((reference) =>
    reference.slice(0, path.length).every((segment, index) => segment === path[index]),
  );
}

const REFERENCE = /\.Values\b((?:\.[A-Za-z_]\w*)*)/g;
const INDEXED = /\bindex\s+\$?\.Values((?:\s+"[^"]*")+)/g;

/** Paths that templates name; undefined when one names all of `.Values`. */
function readsOf(templates: readonly ChartText[]): readonly (readonly string[])[] | undefined {
  const references = new Map<string, readonly string[]>();
  for (const { path, text } of templates) {
    // Notes are words for the person who installs.
    if (path.endsWith('NOTES.txt')) continue;
    const source = text.replace(/\{\{-?\s*\/\*[\s\S]*?\*\/\s*-?\}\}/g, '');
    for (const [, keys = ''] of source.matchAll(INDEXED)) {
      const segments = [...keys.matchAll(/"([^"]*)"/g)].map(([, key = '']) => key);
      references.set(segments.join('\0'), segments);
    }
    for (const [, keys = ''] of source.replace(INDEXED, '').matchAll(REFERENCE)) {
      const segments = keys.split('.').slice(1);
      if (segments.length === 0) return undefined;
      references.set(segments.join('\0'), segments);
    }
  }
  return [...references.values()];
}

import type { ChartFiles } from '../../chart/files.ts';
import { createTurns } from '../turns.ts';
import { define, merged, parsedValues, type Values } from './merge.ts';

/** A chart with its values.yaml read, and those of its subcharts. */
export interface ChartValues {
  readonly files: ChartFiles;
  /** Undefined: no mapping, or too large to be looked into. */
  readonly own: Values | undefined;
  readonly subcharts: ReadonlyMap<string, ChartValues>;
}

export async function chartValues(files: ChartFiles, turn = createTurns()): Promise<ChartValues> {
  await turn(files.values.length);
  const own = parsedValues(files.values);
  const subcharts = new Map<string, ChartValues>();
  for (const [name, inner] of files.subcharts) subcharts.set(name, await chartValues(inner, turn));
  return { files, own, subcharts };
}

/** Values that a chart has when nobody sets any: its own over those of its subcharts. */
export function defaultsOf({ files, own, subcharts }: ChartValues): Values {
  const result: Record<string, unknown> = {};
  for (const [name, inner] of subcharts) {
    const named = files.chartYaml.dependencies.filter((dependency) => dependency.name === name);
    for (const key of named.length === 0 ? [name] : named.map(({ alias }) => alias ?? name))
      define(result, key, defaultsOf(inner));
  }
  return merged(result, own ?? {});
}

import { readdir, readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import type { z } from 'zod';
import { DELIVERY_PATHS, DeliveryCase } from './delivery-case.ts';
import { PipelineCase } from './pipelines/pipeline-case.ts';

/** At the top of the tree, two levels up from src/evals and from dist/evals alike. */
export const CASES = new URL('../../evals/cases/', import.meta.url);

export interface EvalCases {
  readonly delivery: readonly DeliveryCase[];
  readonly pipelines: readonly PipelineCase[];
}

/**
 * All cases, sorted by name within their path. Throws for a case that is none, that stands in another path's folder,
 * or whose name is taken: what is not measured must not go unsaid.
 */
export async function loadCases(directory: URL = CASES): Promise<EvalCases> {
  const folders = await readdir(directory);
  const known: readonly string[] = [...DELIVERY_PATHS, 'pipelines'];
  const unknown = folders.find((folder) => !known.includes(folder));
  if (unknown !== undefined)
    throw new Error(
      `${directory.pathname}${unknown}: there is no path ${unknown}; there are ${known.join(', ')}`,
    );
  const delivery: DeliveryCase[] = [];
  for (const path of DELIVERY_PATHS) {
    const cases = await readFolder(new URL(`${path}/`, directory), DeliveryCase);
    const stray = cases.find((one) => one.path !== path);
    if (stray)
      throw new Error(`the case ${stray.name} of the path ${stray.path} stands in the folder ${path}`);
    delivery.push(...cases);
  }
  const pipelines = await readFolder(new URL('pipelines/', directory), PipelineCase);
  const names = [...delivery, ...pipelines].map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`two cases are named ${twice}`);
  return { delivery, pipelines };
}

async function readFolder<T>(folder: URL, schema: z.ZodType<T>): Promise<readonly T[]> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.yaml')).sort();
  return await Promise.all(
    files.map(async (name) => {
      const file = new URL(name, folder);
      const parsed = schema.safeParse(parse(await readFile(file, 'utf8'), { merge: true }));
      if (parsed.success) return parsed.data;
      const issue = parsed.error.issues[0];
      throw new Error(`${file.pathname}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`);
    }),
  );
}

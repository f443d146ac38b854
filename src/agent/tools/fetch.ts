import { posix } from 'node:path';
import { z } from 'zod';
import { SCRATCH } from '../../sandbox/port.ts';
import type { Result } from './deliver.ts';
import { defineParameters } from './parameters.ts';

const request = z.strictObject({
  tool: z.string().describe('Name of the data source tool to call'),
  args: z.record(z.string(), z.unknown()).describe('Its arguments'),
  path: z.string().min(1).max(1024).describe(`File to write, below ${SCRATCH}`),
});

export type FetchRequest = z.output<typeof request>;

export const fetchParameters = defineParameters(request);

export const fetchBatchParameters = defineParameters(
  z.strictObject({ requests: z.array(request).min(1).max(50).describe('Fetched in this order') }),
);

export const fetchDefinition = {
  name: 'fetch_to_sandbox',
  description:
    'Call a data source tool and write its whole output to a file in the sandbox, without showing it. ' +
    'Returns path, bytes and lines.',
  parameters: fetchParameters.schema,
};

export const fetchBatchDefinition = {
  name: 'fetch_batch_to_sandbox',
  description:
    'Several fetch_to_sandbox requests in one call. Returns results in the same order; one that fails does not stop the others.',
  parameters: fetchBatchParameters.schema,
};

/** Relative paths start at SCRATCH. Undefined for anything that does not end up below it. */
export function pathInScratch(path: string): string | undefined {
  if (path.includes('\0')) return undefined;
  const resolved = posix.resolve(SCRATCH, path);
  return resolved.startsWith(`${SCRATCH}/`) ? resolved : undefined;
}

/** One after the other: their order on disk is the order asked for, and one source is not stormed. */
export async function fetchBatch(
  requests: readonly FetchRequest[],
  fetchOne: (request: FetchRequest, index: number) => Promise<Result>,
): Promise<Result> {
  const results: Result[] = [];
  for (const [index, one] of requests.entries()) results.push(await fetchOne(one, index));
  return { results };
}

import { z } from 'zod';
import type { Farm } from './farm.ts';

/** Checked, so that nothing but an id gets into an address. In lower case, as artifacts are stored. */
export const requestId = z
  .string()
  .regex(/^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/, 'expected the UUID of a request')
  .describe('Id of the request, a UUID')
  .overwrite((id) => id.toLowerCase());

const text = z.string().nullish();
const Request = z.object({
  state: z.string(),
  created: text,
  updated: text,
  queued_time: z.number().nullish(),
  run_time: z.number().nullish(),
  notes: z.array(z.object({ level: text, message: text })).nullish(),
  result: z.object({ overall: text, summary: text }).nullish(),
  test: z.object({ fmf: z.object({ url: text, ref: text, name: text }).nullish() }).nullish(),
  environments_requested: z
    .array(z.object({ arch: text, os: z.object({ compose: text }).nullish() }))
    .nullish(),
});

/** What matters of a request. Not what it was started with: variables and settings may hold secrets. */
export type FarmRequest = z.infer<typeof Request>;

/** Throws `HttpError`, and `ZodError` for an answer of another form. */
export async function readRequest(farm: Farm, id: string, signal: AbortSignal): Promise<FarmRequest> {
  return Request.parse(await farm.request(id, signal));
}

/** Where a request stands, as far as its results go. */
export type Stage =
  /** Nothing has run. */
  | 'Waiting'
  | 'Running'
  | 'Complete'
  /** Testing Farm itself failed. */
  | 'Error'
  | 'Canceled'
  /** A state that we do not know. */
  | 'Other';

export function stageOf({ state }: FarmRequest): Stage {
  switch (state) {
    case 'new':
    case 'queued':
      return 'Waiting';
    case 'running':
      return 'Running';
    case 'complete':
      return 'Complete';
    case 'error':
      return 'Error';
    case 'canceled':
    case 'cancel-requested':
      return 'Canceled';
    default:
      return 'Other';
  }
}

/** What the stage means for whoever looks for the cause of a failure. */
export const MEANING: Readonly<Record<Stage, string>> = {
  Waiting: 'No test has run yet, so there are no results.',
  Running: 'Tests are running: there are no results yet, or only a part of them.',
  Complete: 'The tests have run.',
  Error:
    'Testing Farm could not run the tests to their end: provisioning, installation or the farm itself failed, which is no failed test. Summary and notes say why.',
  Canceled: 'The request was canceled: there may be no results.',
  Other: 'This state is not known here.',
};

/** The reasons that Testing Farm gives, in one line; undefined when it gives none. */
export function reasonOf({ result, notes }: FarmRequest): string | undefined {
  const given = [result?.summary, ...(notes ?? []).map(({ message }) => message)];
  const lines = given.flatMap((line) => (line ? [line.replace(/\s+/g, ' ').trim()] : []));
  return lines.length === 0 ? undefined : lines.join('; ').slice(0, 1_000);
}

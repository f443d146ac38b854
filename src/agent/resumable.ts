import type { Checkpoint } from './checkpoint.ts';
import type { Contents, Model } from './models/port.ts';
import { STOPPED_ERROR } from './prompts.ts';

/**
 * The conversation of a checkpoint as a later run can go on with it. Calls without a result (the run was stopped
 * in the middle of a turn) get one that says so: providers refuse a history that leaves calls open.
 */
export function resumableContents(
  model: Pick<Model, 'makeToolResponses'>,
  {
    contents,
    pending,
  }: Pick<Checkpoint, 'contents'> & { readonly pending?: Checkpoint['pending'] | undefined },
): Contents {
  if (!pending) return contents;
  const known = new Map(pending.results.map(({ index, result }) => [index, result]));
  const results = pending.calls.map((call, index) => ({
    call,
    result: known.get(index) ?? { error: STOPPED_ERROR },
  }));
  return [...contents, ...model.makeToolResponses(results)];
}

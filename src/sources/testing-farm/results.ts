import { z } from 'zod';
import type { Tool, ToolOutput } from '../../agent/tools/port.ts';
import { HttpError } from '../../http/client.ts';
import { explained, sourceTool } from '../source-tool.ts';
import { textStream } from '../text-stream.ts';
import type { Farm } from './farm.ts';
import { NOTES } from './notes.ts';
import { peek } from './peek.ts';
import { MEANING, readRequest, reasonOf, requestId, stageOf } from './request.ts';

export function results(farm: Farm): Tool {
  return sourceTool(farm.source, {
    name: 'tf_get_results',
    description:
      'Results of a Testing Farm request: JUnit-like XML with every test, its result and its logs.',
    notes: NOTES,
    schema: z.object({ request_id: requestId }),
    async run({ request_id: id }, { signal }) {
      try {
        const { body } = await farm.artifact(`${farm.artifactsBase}/${id}/results.xml`, signal);
        const { start, body: whole } = await peek(body);
        if (!isPage(start)) return textStream(whole, XML);
        // A generator that was never begun has nothing to end: begun, it lets the connection go.
        for await (const _ of whole) break;
        return { kind: 'Error', message: NO_XML };
      } catch (error) {
        // Some stores say 403 of what is not there.
        if (error instanceof HttpError && (error.status === 404 || error.status === 403))
          return whyNone(farm, id, error, signal);
        throw error;
      }
    },
  });
}

const XML = {
  suffix: '.xml',
  what: 'results',
  whenEmpty: 'results.xml is empty: tf_get_request_status tells what became of the request.',
} as const;

const NO_XML =
  'Testing Farm: a page came instead of XML, such as a login shows. Name the results as missing in the answer and go on without.';

/** By what it is: servers call XML whatever they like. */
const isPage = (start: Uint8Array): boolean =>
  /^\s*<(?:!doctype html|html)\b/i.test(new TextDecoder().decode(start.subarray(0, 256)));

/** Results that are not there are no failure to read them: the request's state says what it is. */
async function whyNone(farm: Farm, id: string, error: HttpError, signal: AbortSignal): Promise<ToolOutput> {
  try {
    const request = await readRequest(farm, id, signal);
    const stage = stageOf(request);
    if (error.status === 403 && (stage === 'Complete' || stage === 'Other')) throw error;
    const why = stage === 'Complete' ? undefined : reasonOf(request);
    return {
      kind: 'Error',
      message: [
        `No results for request ${id}: its state is ${request.state}.`,
        stage === 'Complete' ? GONE : MEANING[stage],
        ...(why === undefined ? [] : [`Testing Farm says: ${why}.`]),
        stage === 'Waiting' || stage === 'Running'
          ? 'Say that they are not there yet, and go on without.'
          : 'Say so in the answer, and go on without.',
      ].join(' '),
    };
  } catch (failure) {
    if (failure === error || !(failure instanceof HttpError)) throw failure;
    if (failure.status === 404)
      return {
        kind: 'Error',
        message: `Testing Farm knows no request ${id}, and has no results of it. Check the id; do not guess others.`,
      };
    return {
      kind: 'Error',
      message: `No results for request ${id} (${error.status}), and why could not be asked. ${explained(farm.source, failure)}`,
    };
  }
}

const GONE = 'The tests have run, but no results.xml was kept, or it was deleted since.';

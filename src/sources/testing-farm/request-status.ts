import { z } from 'zod';
import type { Tool } from '../../agent/tools/port.ts';
import { sourceTool } from '../source-tool.ts';
import type { Farm } from './farm.ts';
import { type FarmRequest, MEANING, readRequest, requestId, stageOf } from './request.ts';

/** Notes of a request that went wrong often enough to have more are repetitions. */
const MAX_NOTES = 20;
const MAX_NOTE_CHARS = 500;

export function requestStatus(farm: Farm): Tool {
  return sourceTool(farm.source, {
    name: 'tf_get_request_status',
    description:
      'State of a Testing Farm request, its overall result, why it failed if it did, and how long it was queued and ran.',
    schema: z.object({ request_id: requestId }),
    async run({ request_id: id }, { signal }) {
      return { kind: 'Json', value: shown(id, await readRequest(farm, id, signal)) };
    },
  });
}

function shown(id: string, request: FarmRequest): Readonly<Record<string, unknown>> {
  const { state, created, updated, queued_time: queued, run_time: ran, result, test, notes } = request;
  const environments = (request.environments_requested ?? []).map(({ arch, os }) => ({
    arch: arch ?? undefined,
    compose: os?.compose ?? undefined,
  }));
  return {
    request_id: id,
    state,
    meaning: MEANING[stageOf(request)],
    overall: result?.overall ?? undefined,
    summary: result?.summary ?? undefined,
    notes: (notes ?? []).slice(-MAX_NOTES).map(({ level, message }) => ({
      level: level ?? undefined,
      message: message?.slice(0, MAX_NOTE_CHARS),
    })),
    created: created ?? undefined,
    updated: updated ?? undefined,
    queued_seconds: queued ?? undefined,
    run_seconds: ran ?? undefined,
    test: test?.fmf ?? undefined,
    environments,
  };
}

import type { PipelineCase } from '../pipeline-case.ts';
import { ARTIFACTS_URL, FARM_API_URL } from './places.ts';
import { json, type Route, text, xml } from './routes.ts';

/** What Testing Farm would answer of the requests, and their artifacts. */
export function farmRoutes({ testingFarm }: PipelineCase): readonly Route[] {
  const api = new URL(FARM_API_URL);
  const artifacts = new URL(ARTIFACTS_URL);
  return testingFarm.flatMap(({ id, state, overall, summary, results, logs }): readonly Route[] => [
    {
      origin: api.origin,
      path: `${api.pathname}/requests/${id}`,
      answer: () => json({ id, state, result: { overall, summary } }),
    },
    ...(results === undefined
      ? []
      : [
          {
            origin: artifacts.origin,
            path: `${artifacts.pathname}/${id}/results.xml`,
            answer: () => xml(results.replaceAll('ARTIFACTS', `${ARTIFACTS_URL}/${id}`)),
          },
        ]),
    ...Object.entries(logs).map(([path, log]) => ({
      origin: artifacts.origin,
      path: `${artifacts.pathname}/${id}/${path}`,
      answer: () => text(log),
    })),
  ]);
}

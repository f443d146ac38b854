import type { Tool } from '../../agent/tools/port.ts';
import { createFarm, type TestingFarmSource } from './farm.ts';
import { requestStatus } from './request-status.ts';
import { results } from './results.ts';
import { testLog } from './test-log.ts';

export type { TestingFarmSource } from './farm.ts';

/**
 * The model's tools on Testing Farm. It has no credential here and its requests are public to whoever knows their id,
 * so a run may read any request; which ones belong to the merge request, its statuses and PipelineRuns say.
 */
export function testingFarmTools(source: TestingFarmSource): readonly Tool[] {
  const farm = createFarm(source);
  return [requestStatus(farm), results(farm), testLog(farm)];
}

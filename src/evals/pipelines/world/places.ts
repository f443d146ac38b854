import type { SourceScope } from '../../../sources/port.ts';

/** Where the pipelines of all cases ran. */
export const GITLAB_URL = 'https://gitlab.example.com';
export const CLUSTER_URL = 'https://api.konflux.example.com:6443';
export const NAMESPACE = 'shop-tenant';
export const ARTIFACTS_URL = 'https://artifacts.farm.example.com/runs';
export const FARM_API_URL = 'https://api.farm.example.com/v0.1';

export const SCOPE: SourceScope = {
  project: 'platform/shop',
  iid: 42,
  sha: '7c1e5d0f3a9b4c2d8e6f70718293a4b5c6d7e8f9',
};
export const BASE_SHA = '1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e';
export const TARGET_BRANCH = 'main';
/** The change, and what it changes. */
export const isReadableRef = (ref: string): boolean => [SCOPE.sha, BASE_SHA, TARGET_BRANCH].includes(ref);
export const PIPELINE_ID = 9001;

/** Of the job at this place of the case's list. */
export const jobId = (index: number): number => 1001 + index;
export const jobUrl = (index: number): string => `${GITLAB_URL}/${SCOPE.project}/-/jobs/${jobId(index)}`;

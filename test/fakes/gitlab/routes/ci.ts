import { jobAsStatus, jobEntity, pipelineEntity, statusEntity } from '../entities.ts';
import * as find from '../find.ts';
import { type Call, list, notFound, ok, type Route, stored } from '../http.ts';
import type { FakeJob } from '../state.ts';
import { paging } from './merge-requests.ts';

export const ciRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'projects/:id/repository/commits/:sha/statuses',
    query: {
      ...paging,
      ref: 'string',
      stage: 'string',
      name: 'string',
      pipeline_id: 'integer',
      order_by: 'string',
      sort: 'string',
      all: 'boolean',
    },
    handle(call) {
      const project = find.projectWithCode(call);
      const { sha = '' } = call.path;
      const jobs = project.pipelines
        .filter((pipeline) => pipeline.sha === sha)
        .flatMap((pipeline) => pipeline.jobs);
      const { name } = call.query;
      const outside = project.statuses.filter(
        (status) => status.sha === sha && (name === undefined || status.name === name),
      );
      const known =
        project.repository.commits.has(sha) ||
        [...project.mergeRequests.values()].some(({ commits }) =>
          commits.some((commit) => commit.sha === sha),
        );
      if (!known && jobs.length === 0 && outside.length === 0) throw notFound('Commit');
      return list([
        ...jobs.map((job) => jobAsStatus(call.base, job)),
        ...outside.map((status) => statusEntity(call.base, status)),
      ]);
    },
  },
  {
    method: 'GET',
    path: 'projects/:id/jobs/:job_id',
    handle: (call) => ok(jobEntity(call.base, findJob(call))),
  },
  {
    method: 'GET',
    path: 'projects/:id/jobs/:job_id/trace',
    handle(call) {
      const job = findJob(call);
      const { objectStorage } = job.pipeline.project;
      if (objectStorage !== undefined) return stored(objectStorage, `traces/${job.id}/job.log`);
      const { trace = new Uint8Array() } = job;
      const body = typeof trace === 'function' ? { chunks: trace } : { bytes: trace };
      return { status: 200, ...body, headers: { 'content-type': 'text/plain' } };
    },
  },
  {
    method: 'GET',
    path: 'projects/:id/pipelines',
    query: {
      ...paging,
      scope: 'string',
      status: 'string',
      source: 'string',
      ref: 'string',
      sha: 'string',
      username: 'string',
      order_by: 'string',
      sort: 'string',
      updated_after: 'string',
      updated_before: 'string',
    },
    handle(call) {
      const wanted = (['status', 'source', 'ref', 'sha'] as const).filter(
        (name) => call.query[name] !== undefined,
      );
      const rows = find
        .projectWithCode(call)
        .pipelines.filter((pipeline) => wanted.every((name) => pipeline[name] === call.query[name]));
      return list(rows.map((pipeline) => pipelineEntity(call.base, pipeline)).reverse());
    },
  },
  {
    method: 'GET',
    path: 'projects/:id/pipelines/:pipeline_id',
    handle: (call) => ok(pipelineEntity(call.base, findPipeline(call))),
  },
  {
    method: 'GET',
    path: 'projects/:id/pipelines/:pipeline_id/jobs',
    query: { ...paging, scope: 'string', include_retried: 'boolean' },
    handle: (call) => list(findPipeline(call).jobs.map((job) => jobEntity(call.base, job))),
  },
];

function findPipeline(call: Call) {
  const found = find
    .projectWithCode(call)
    .pipelines.find(({ id }) => id === Number(call.path['pipeline_id']));
  if (found === undefined) throw notFound('Pipeline');
  return found;
}

function findJob(call: Call): FakeJob {
  const jobs = find.projectWithCode(call).pipelines.flatMap((pipeline) => pipeline.jobs);
  const found = jobs.find(({ id }) => id === Number(call.path['job_id']));
  if (found === undefined) throw notFound('Job');
  return found;
}

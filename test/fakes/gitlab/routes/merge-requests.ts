import {
  diffEntity,
  mergeRequestEntity,
  pipelineEntity,
  projectEntity,
  pushEntity,
  userBasic,
} from '../entities.ts';
import * as find from '../find.ts';
import { levelIn, list, ok, Refusal, type Route } from '../http.ts';
import { ACCESS } from '../state.ts';

export const paging = { page: 'integer', per_page: 'integer' } as const;

export const mergeRequestRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'user',
    handle: ({ base, token }) =>
      ok({
        ...userBasic(base, token.user),
        bot: token.user.bot,
        email: `${token.user.username}@example.org`,
      }),
  },
  { method: 'GET', path: 'projects/:id', handle: (call) => ok(projectEntity(call.base, find.project(call))) },
  {
    method: 'GET',
    path: 'projects/:id/merge_requests/:iid',
    query: {
      include_diverged_commits_count: 'boolean',
      include_rebase_in_progress: 'boolean',
      render_html: 'boolean',
    },
    handle: (call) => ok(mergeRequestEntity(call.base, find.mergeRequest(call))),
  },
  {
    method: 'PUT',
    path: 'projects/:id/merge_requests/:iid',
    body: { add_labels: 'string', remove_labels: 'string' },
    handle(call) {
      const mergeRequest = find.mergeRequest(call);
      const labels = (name: string) =>
        String(call.body[name] ?? '')
          .split(',')
          .filter(Boolean);
      if (Object.keys(call.body).length === 0)
        throw new Refusal({ status: 400, json: { error: 'at least one parameter must be provided' } });
      // Who may not set labels is answered as if nothing had been asked.
      if (levelIn(mergeRequest.project, call) >= ACCESS.reporter) {
        const removed = labels('remove_labels');
        const kept = mergeRequest.labels.filter((label) => !removed.includes(label));
        mergeRequest.labels = [...new Set([...kept, ...labels('add_labels')])];
        mergeRequest.updatedAt = call.state.time();
      }
      return ok(mergeRequestEntity(call.base, mergeRequest));
    },
  },
  {
    method: 'GET',
    path: 'projects/:id/merge_requests/:iid/changes',
    query: { access_raw_diffs: 'boolean', unidiff: 'boolean' },
    handle(call) {
      const mergeRequest = find.mergeRequest(call);
      return ok({
        ...mergeRequestEntity(call.base, mergeRequest),
        changes: mergeRequest.diffs.map(diffEntity),
        // Reported of real servers: with raw diffs the flag stays false although files are missing.
        overflow: mergeRequest.overflow && call.query['access_raw_diffs'] !== 'true',
      });
    },
  },
  {
    method: 'GET',
    path: 'projects/:id/merge_requests/:iid/diffs',
    query: { ...paging, unidiff: 'boolean' },
    handle: (call) => list(find.mergeRequest(call).diffs.map(diffEntity)),
  },
  {
    method: 'GET',
    path: 'projects/:id/merge_requests/:iid/commits',
    query: paging,
    handle: (call) =>
      list(
        find.mergeRequest(call).commits.map((commit) => ({
          id: commit.sha,
          short_id: commit.sha.slice(0, 8),
          created_at: commit.createdAt,
          parent_ids: commit.parents ?? [],
          title: commit.title,
          message: commit.message ?? commit.title,
          author_name: commit.author.name,
          author_email: `${commit.author.username}@example.org`,
        })),
      ),
  },
  {
    method: 'GET',
    path: 'projects/:id/merge_requests/:iid/pipelines',
    query: paging,
    handle(call) {
      const mergeRequest = find.mergeRequest(call);
      const own = mergeRequest.project.pipelines.filter((pipeline) => pipeline.mergeRequest === mergeRequest);
      return list(own.map((pipeline) => pipelineEntity(call.base, pipeline)).reverse());
    },
  },
  {
    method: 'GET',
    path: 'projects/:id/events',
    query: {
      ...paging,
      action: 'string',
      target_type: 'string',
      before: 'string',
      after: 'string',
      sort: 'string',
    },
    handle(call) {
      const project = find.projectWithCode(call);
      const pushes = [...project.mergeRequests.values()].flatMap((mergeRequest) =>
        mergeRequest.commits.map((commit, index) => pushEntity(call.base, mergeRequest, commit, index)),
      );
      // Nothing but pushes is kept here.
      const rows = call.query['action'] === 'pushed' ? pushes : [];
      rows.sort((a, b) => Date.parse(a.created_at) - Date.parse(b.created_at));
      return list(call.query['sort'] === 'asc' ? rows : rows.reverse());
    },
  },
  {
    method: 'GET',
    path: 'projects/:id/members/all/:user_id',
    handle(call) {
      const project = find.project(call);
      const user = call.state.users.find(({ id }) => id === Number(call.path['user_id']));
      const level = user === undefined ? undefined : project.members.get(user.id);
      if (user === undefined || level === undefined || level === ACCESS.none) throw missing();
      return ok({
        ...userBasic(call.base, user),
        access_level: level,
        created_at: '2026-01-01T00:00:00.000Z',
        expires_at: null,
        membership_state: 'active',
      });
    },
  },
];

/** A missing member is answered without naming what is missing. */
const missing = () => new Refusal({ status: 404, json: { message: '404 Not found' } });

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { statusEntity } from '../entities.ts';
import * as find from '../find.ts';
import {
  badRequest,
  type Call,
  created,
  forbidden,
  levelIn,
  notFound,
  ok,
  Refusal,
  type Route,
} from '../http.ts';
import type { FakeChanges, RepositoryCommit } from '../repository.ts';
import { ACCESS, type FakeProject } from '../state.ts';

/** Branches, commits and their statuses, out of the project's repository. */
export const commitRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'projects/:id/repository/branches/:branch',
    handle(call) {
      const project = find.projectWithCode(call);
      const { branch = '' } = call.path;
      const sha = project.repository.branches.get(branch);
      const head = sha === undefined ? undefined : project.repository.at(sha);
      if (head === undefined) throw notFound('Branch');
      return ok({
        name: branch,
        commit: commitEntity(head),
        merged: false,
        protected: project.repository.protectedBranches.has(branch),
        default: project.defaultBranch === branch,
        can_push: mayPush(project, branch, call),
      });
    },
  },
  {
    method: 'GET',
    path: 'projects/:id/repository/merge_base',
    query: { 'refs[]': 'string' },
    handle(call) {
      const { repository } = find.projectWithCode(call);
      const { refs = [] } = call.lists;
      if (refs.length < 2) throw badRequest('Provide exactly 2 refs');
      const [one = '', other = ''] = refs;
      const missing = refs.filter((ref) => repository.at(ref) === undefined);
      if (missing.length > 0)
        throw badRequest(`Could not find ${missing.length > 1 ? 'refs' : 'ref'}: ${missing.join(', ')}`);
      const base = repository.mergeBase(one, other);
      if (base === undefined) throw notFound('Merge Base');
      return ok(commitEntity(base));
    },
  },
  {
    method: 'HEAD',
    path: 'projects/:id/repository/files/:file_path',
    query: { ref: { type: 'string', required: true } },
    handle(call) {
      const { repository } = find.projectWithCode(call);
      const { file_path: path = '' } = call.path;
      const ref = call.query['ref'] ?? '';
      const commit = repository.at(ref);
      if (commit === undefined) throw notFound('Commit');
      const entry = commit.tree.get(path);
      if (entry === undefined || !('bytes' in entry)) throw notFound('File');
      return {
        status: 200,
        headers: {
          'x-gitlab-commit-id': commit.sha,
          'x-gitlab-content-sha256': createHash('sha256').update(entry.bytes).digest('hex'),
          'x-gitlab-file-path': path,
          'x-gitlab-last-commit-id': repository.lastCommitOf(ref, path)?.sha ?? '',
          'x-gitlab-ref': ref,
          'x-gitlab-size': String(entry.bytes.length),
        },
      };
    },
  },
  {
    method: 'POST',
    path: 'projects/:id/repository/commits',
    body: {
      branch: { type: 'string', required: true },
      commit_message: { type: 'string', required: true },
      actions: { type: 'list', required: true },
      author_email: 'string',
      author_name: 'string',
      force: 'boolean',
      start_branch: 'string',
      start_sha: 'string',
      stats: 'boolean',
    },
    handle(call) {
      const project = find.projectWithCode(call);
      const { branch, commit_message: message, actions } = Wanted.parse(call.body);
      if (!mayPush(project, branch, call)) throw notAllowed();
      if (call.body['force'] === true || call.body['start_sha'] !== undefined)
        throw badRequest('the stand-in overwrites no branch');
      const head = project.repository.at(branch);
      if (head === undefined) throw refused('You can only create or edit files when you are on a branch');
      const files: Record<string, FakeChanges[string]> = {};
      for (const action of actions) files[action.file_path] = changed(project, branch, head, action);
      const made = call.state.commit(project, { branch, message, files, author: call.token.user });
      return created(commitEntity(made));
    },
  },
  {
    method: 'POST',
    path: 'projects/:id/statuses/:sha',
    body: {
      state: { type: 'string', required: true },
      name: 'string',
      context: 'string',
      ref: 'string',
      target_url: 'string',
      description: 'string',
      coverage: 'integer',
      pipeline_id: 'integer',
    },
    handle: setStatus,
  },
];

const Wanted = z.object({
  branch: z.string(),
  commit_message: z.string(),
  actions: z
    .array(
      z.strictObject({
        action: z.enum(['create', 'update', 'delete']),
        file_path: z.string(),
        content: z.string().optional(),
        encoding: z.enum(['text', 'base64']).optional(),
        last_commit_id: z.string().optional(),
      }),
    )
    .min(1),
});

function changed(
  project: FakeProject,
  branch: string,
  head: RepositoryCommit,
  action: z.infer<typeof Wanted>['actions'][number],
): FakeChanges[string] {
  const { file_path: path, last_commit_id: last } = action;
  const there = head.tree.get(path);
  if (action.action === 'create') {
    if (there !== undefined) throw refused('A file with this name already exists');
  } else {
    if (there === undefined) throw refused("A file with this name doesn't exist");
    if (last !== undefined && project.repository.lastCommitOf(branch, path)?.sha !== last)
      throw refused(`The file has changed since you started editing it: ${path}`);
  }
  if (action.action === 'delete') return undefined;
  const bytes = Buffer.from(action.content ?? '', action.encoding === 'base64' ? 'base64' : 'utf8');
  return there !== undefined && 'bytes' in there ? { ...there, bytes } : { bytes };
}

const STATES = ['pending', 'running', 'success', 'failed', 'canceled', 'skipped'];
/** Of its descriptions and names. */
const MAX_TEXT = 255;

function setStatus(call: Call) {
  const project = find.projectWithCode(call);
  if (levelIn(project, call) < ACCESS.developer) throw forbidden();
  const { sha = '' } = call.path;
  const [state, name, description] = ['state', 'name', 'description'].map((key) =>
    String(call.body[key] ?? ''),
  );
  if (state === undefined || !STATES.includes(state))
    throw new Refusal({ status: 400, json: { error: 'state does not have a valid value' } });
  if ([description, name].some((text = '') => [...text].length > MAX_TEXT))
    throw refused('{"description"=>["is too long (maximum is 255 characters)"]}');
  if (!knows(project, sha)) throw notFound('Commit');
  const ref = call.body['ref'] ?? branchOf(project, sha);
  if (typeof ref !== 'string') throw notFound('References for commit');
  const open = project.statuses.find(
    (one) => one.sha === sha && one.name === name && ['pending', 'running'].includes(one.status),
  );
  if (open?.status === state)
    throw refused(
      `Cannot transition status via :enqueue from :${state} (Reason(s): Status cannot transition via "enqueue")`,
    );
  // What is over stays, and is shown no more: the newest of a name counts.
  const others = project.statuses.filter((one) => one.sha !== sha || one.name !== name);
  project.statuses.splice(0, project.statuses.length, ...others);
  const made = call.state.status(project, {
    sha,
    ref,
    name: name ?? 'default',
    status: state,
    description: description ?? null,
    author: call.token.user,
  });
  return created(statusEntity(call.base, made));
}

const knows = (project: FakeProject, sha: string): boolean =>
  project.repository.commits.has(sha) ||
  [...project.mergeRequests.values()].some(({ commits }) => commits.some((commit) => commit.sha === sha));

const branchOf = (project: FakeProject, sha: string): string | undefined =>
  [...project.repository.branches.keys()].find((branch) =>
    project.repository.history(branch).some((commit) => commit.sha === sha),
  ) ??
  [...project.mergeRequests.values()].find(
    ({ sourceProject, commits }) => sourceProject === project && commits.some((commit) => commit.sha === sha),
  )?.sourceBranch;

const mayPush = (project: FakeProject, branch: string, call: Call): boolean =>
  levelIn(project, call) >=
  (project.repository.protectedBranches.has(branch) ? ACCESS.maintainer : ACCESS.developer);

const notAllowed = () =>
  new Refusal({
    status: 403,
    json: { message: '403 Forbidden - You are not allowed to push into this branch' },
  });
const refused = (message: string) => new Refusal({ status: 400, json: { message } });

const commitEntity = ({ sha, parents, message, createdAt }: RepositoryCommit) => ({
  id: sha,
  short_id: sha.slice(0, 8),
  created_at: createdAt,
  parent_ids: parents,
  title: message.split('\n')[0],
  message,
});

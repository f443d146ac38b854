import { gzipSync } from 'node:zlib';
import * as find from '../find.ts';
import { type Call, notFound, type Route, stored } from '../http.ts';
import type { FakeEntry } from '../repository.ts';
import type { FakeProject } from '../state.ts';
import { type TarEntry, tar } from '../tar.ts';

export const repositoryRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'projects/:id/repository/files/:file_path/raw',
    query: { ref: 'string', lfs: 'boolean' },
    handle(call) {
      const project = find.projectWithCode(call);
      const files = filesAt(project, call.query['ref'] ?? project.defaultBranch);
      if (files === undefined) throw notFound('Commit');
      const bytes = files.get(call.path['file_path'] ?? '');
      if (bytes === undefined) throw notFound('File');
      return { status: 200, bytes, headers: { 'content-type': 'text/plain; charset=utf-8' } };
    },
  },
  archive('archive'),
  archive('archive.tar.gz'),
];

function archive(name: string): Route {
  return {
    method: 'GET',
    path: `projects/:id/repository/${name}`,
    query: { sha: 'string', path: 'string', include_lfs_blobs: 'boolean' },
    handle(call: Call) {
      const project = find.projectWithCode(call);
      const ref = call.query['sha'] ?? project.defaultBranch;
      const commit = project.files.has(ref) ? undefined : project.repository.at(ref);
      const files = filesAt(project, ref) ?? (project.archive && new Map<string, Uint8Array>());
      if (files === undefined && commit === undefined) throw notFound('File');
      if (project.objectStorage !== undefined) return stored(project.objectStorage, `archives/${ref}.tar.gz`);
      const root = `${project.path.replaceAll('/', '-')}-${ref}`;
      const entries = commit
        ? [...commit.tree].flatMap(([path, entry]) => archived(`${root}/${path}`, entry))
        : [...(files ?? [])].map(([path, bytes]) => ({ path: `${root}/${path}`, bytes }));
      return {
        status: 200,
        ...(project.archive ? { chunks: project.archive } : { bytes: gzipSync(tar(entries, commit?.sha)) }),
        headers: {
          'content-type': 'application/octet-stream',
          'content-disposition': `attachment; filename="${root}.tar.gz"`,
        },
      };
    },
  };
}

/** A submodule is an empty folder. */
function archived(path: string, entry: FakeEntry): readonly TarEntry[] {
  const bytes = new Uint8Array();
  if ('symlink' in entry) return [{ path, bytes, symlink: entry.symlink }];
  if ('submodule' in entry) return [{ path: `${path}/`, bytes, type: '5' }];
  return [{ path, ...entry }];
}

/** A ref is a branch, a commit, or the source branch of a merge request whose head has files. */
function filesAt(project: FakeProject, ref: string): Map<string, Uint8Array> | undefined {
  const mergeRequest = [...project.mergeRequests.values()].find(({ sourceBranch }) => sourceBranch === ref);
  return (
    project.files.get(ref) ??
    (mergeRequest ? project.files.get(mergeRequest.sha) : undefined) ??
    filesOf(project.repository.at(ref)?.tree)
  );
}

const filesOf = (tree: ReadonlyMap<string, FakeEntry> | undefined): Map<string, Uint8Array> | undefined =>
  tree &&
  new Map([...tree].flatMap(([path, entry]) => ('bytes' in entry ? [[path, entry.bytes] as const] : [])));

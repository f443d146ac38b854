import { z } from 'zod';
import type { Tool } from '../../agent/tools/port.ts';
import { type GitLabApi, projectPath } from '../../http/gitlab.ts';
import type { SourceScope } from '../port.ts';
import { gitlabTool } from './gitlab-tool.ts';
import { keptOnFailure, rawBody } from './raw.ts';
import { readableRef } from './readable-ref.ts';
import { project, ref } from './scope.ts';

export function repoArchive(api: GitLabApi, scope: SourceScope): Tool {
  return gitlabTool({
    name: 'gitlab_get_repo_archive',
    description: 'All files of the repository at a commit or branch, as a .tar.gz file in the sandbox.',
    notes: NOTES,
    schema: z.object({ project, ref }),
    async run(args, { signal }) {
      const at = await readableRef(api, scope, args, signal);
      if (at.kind === 'Refused') return { kind: 'Error', message: at.message };
      const path = `projects/${projectPath(args.project)}/repository/archive.tar.gz`;
      const archive = keptOnFailure(await rawBody(api, path, { sha: at.ref }, signal), 'The archive');
      return {
        kind: 'Stream',
        chunks: archive.chunks,
        suffix: '.tar.gz',
        binary: true,
        incomplete() {
          const missing = archive.missing();
          return missing && `${missing} Unpacking it gives the files before that, then an error.`;
        },
      };
    },
  });
}

const NOTES = `\`gitlab_get_repo_archive\` takes the refs of \`gitlab_get_file_at_ref\`. Unpack it where it does not mix with other files: \`mkdir -p repo && tar -xzf FILE -C repo --strip-components=1\`. Take it when you need many files or have to search; for a few, read them one by one. It has no Git history, no submodules, and nothing that the repository keeps out of archives (export-ignore); files of Git LFS are in it with their content.`;

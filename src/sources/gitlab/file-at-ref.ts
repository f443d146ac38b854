import { z } from 'zod';
import type { Tool } from '../../agent/tools/port.ts';
import { type GitLabApi, projectPath } from '../../http/gitlab.ts';
import type { SourceScope } from '../port.ts';
import { gitlabTool } from './gitlab-tool.ts';
import { keptOnFailure, rawBody } from './raw.ts';
import { readableRef } from './readable-ref.ts';
import { project, ref } from './scope.ts';

/** As far as Git itself looks for a NUL to tell binary files. */
const SNIFF_BYTES = 8000;

export function fileAtRef(api: GitLabApi, scope: SourceScope): Tool {
  return gitlabTool({
    name: 'gitlab_get_file_at_ref',
    description: 'One file of the repository as it is at a commit or branch, byte for byte.',
    notes: NOTES,
    schema: z.object({
      project,
      path: z.string().min(1).max(4096).describe('Path of the file in the repository, such as src/app.ts'),
      ref,
    }),
    async run(args, { signal }) {
      const wrong = wrongPath(args.path);
      if (wrong !== undefined) return { kind: 'Error', message: wrong };
      const at = await readableRef(api, scope, args, signal);
      if (at.kind === 'Refused') return { kind: 'Error', message: at.message };
      const files = `projects/${projectPath(args.project)}/repository/files`;
      const body = await rawBody(
        api,
        `${files}/${encodeURIComponent(args.path)}/raw`,
        { ref: at.ref },
        signal,
      );
      const file = keptOnFailure(body, 'The file');
      const { start, chunks, ended } = await withStart(file.chunks);
      const pointer = ended ? lfsPointer(start) : undefined;
      const binary = start.subarray(0, SNIFF_BYTES).includes(0);
      return {
        kind: 'Stream',
        chunks,
        suffix: suffixOf(args.path, binary),
        binary,
        incomplete: file.missing,
        note: () => {
          if (binary) return 'The file is binary.';
          return (
            pointer ?? (file.bytes() === 0 && file.missing() === undefined ? 'The file is empty.' : undefined)
          );
        },
      };
    },
  });
}

const NOTES = `\`gitlab_get_file_at_ref\` reads at the run's \`sha\`, at the target branch (\`target_branch\` of \`gitlab_get_mr_details\`) and at the merge base (\`diff_refs.base_sha\` there): the file after the change, and before it.
\`note\` says when a file is binary, empty, or the pointer of a file in Git LFS. A symbolic link reads as the path that it leads to.`;

/** GitLab takes paths from the root of the repository, and Git has none with empty or dot segments. */
function wrongPath(path: string): string | undefined {
  const usual = path.split('/').every((segment) => segment !== '' && segment !== '.' && segment !== '..');
  if (usual && !path.includes('\0')) return undefined;
  return `No file of a repository has the path ${JSON.stringify(path)}: name it from the root of the repository, without a slash at the start or the end, "." or "..".`;
}

/** The first bytes, and all of them again. */
async function withStart(source: AsyncIterable<Uint8Array>): Promise<{
  readonly start: Uint8Array;
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Whether `start` is everything. */
  readonly ended: boolean;
}> {
  const iterator = source[Symbol.asyncIterator]();
  const parts: Uint8Array[] = [];
  let size = 0;
  let ended = false;
  while (size < SNIFF_BYTES && !ended) {
    const next = await iterator.next();
    if (next.done) ended = true;
    else {
      parts.push(next.value);
      size += next.value.length;
    }
  }
  const start = Buffer.concat(parts);
  async function* chunks(): AsyncGenerator<Uint8Array> {
    try {
      if (start.length > 0) yield start;
      for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value;
    } finally {
      await iterator.return?.();
    }
  }
  return { start, chunks: chunks(), ended };
}

/** Pointers are texts of less than 1024 bytes (Git LFS specification), with these lines in this order. */
const POINTER =
  /^version https:\/\/git-lfs\.github\.com\/spec\/v1\n(?:ext-.*\n)*oid sha256:[0-9a-f]{64}\nsize (\d+)\n$/;

function lfsPointer(bytes: Uint8Array): string | undefined {
  if (bytes.length >= 1024) return undefined;
  const size = POINTER.exec(Buffer.from(bytes).toString('latin1'))?.[1];
  if (size === undefined) return undefined;
  return `This is the pointer of a file of ${size} bytes in Git LFS, not its content: gitlab_get_repo_archive has that.`;
}

/** The file's own ending, so that programs in the sandbox know what it is. */
function suffixOf(path: string, binary: boolean): string {
  return /[^/](\.[A-Za-z0-9]{1,16})$/.exec(path)?.[1] ?? (binary ? '.bin' : '.txt');
}

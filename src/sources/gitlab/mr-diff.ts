import { z } from 'zod';
import type { Tool } from '../../agent/tools/port.ts';
import { HttpError } from '../../http/client.ts';
import { type GitLabApi, projectPath } from '../../http/gitlab.ts';
import type { SourceScope } from '../port.ts';
import { gitlabTool } from './gitlab-tool.ts';
import { iid, isOwnMergeRequest, outOfScope, project } from './scope.ts';

const Change = z.object({
  old_path: z.string(),
  new_path: z.string(),
  new_file: z.boolean(),
  renamed_file: z.boolean(),
  deleted_file: z.boolean(),
  diff: z.string(),
  too_large: z.boolean().nullish(),
  collapsed: z.boolean().nullish(),
  generated_file: z.boolean().nullish(),
});
type Change = z.infer<typeof Change>;
const MergeRequest = z.object({ sha: z.string().nullable(), changes_count: z.string().nullish() });
type MergeRequest = z.infer<typeof MergeRequest>;

/** GitLab collects no more files than this for a merge request, whatever its answers say. */
const GITLAB_MAX_FILES = 1000;
/** Characters of diffs kept in memory; GitLab's own limits are in this range. */
const MAX_DIFF_LENGTH = 16 * 1024 * 1024;

export function mrDiff(api: GitLabApi, scope: SourceScope): Tool {
  return gitlabTool({
    name: 'gitlab_get_mr_diff',
    description:
      'Changed files of the merge request with their diffs, as JSON. Says when the list or a diff is incomplete.',
    notes: NOTES,
    schema: z.object({ project, iid }),
    async run(args, { signal }) {
      const refusal = outOfScope(scope, args);
      if (refusal !== undefined) return { kind: 'Error', message: refusal };
      const found = MergeRequest.parse(
        await api.resources(signal).mergeRequests.show(args.project, args.iid),
      );
      const changes = await read(api, args, signal);
      const expectedSha = isOwnMergeRequest(scope, args) ? scope.sha : undefined;
      return {
        kind: 'Json',
        value: { ...summary(found, changes, expectedSha), files: changes.files.map(file) },
      };
    },
  });
}

const NOTES = `\`gitlab_get_mr_diff\` answers \`{complete, warnings, files: [{path, change, diff}]}\`.
\`complete: false\` means that files or diffs are missing: do not conclude that something was not changed because it is not listed. A file with \`diff_omitted\` (too large, collapsed, generated, binary) has changes that are not shown: \`gitlab_get_file_at_ref\` has it before and after. \`generated: true\` marks files that a program writes.`;

interface Changes {
  readonly files: readonly Change[];
  /** Why reading ended before the end of the list. */
  readonly cut: string | undefined;
}

/** What came before a failure is worth more than the failure. */
async function read(
  api: GitLabApi,
  { project, iid }: { readonly project: string; readonly iid: number },
  signal: AbortSignal,
): Promise<Changes> {
  const files: Change[] = [];
  let length = 0;
  const path = `projects/${projectPath(project)}/merge_requests/${iid}/diffs`;
  try {
    for await (const rows of api.pages(path, {}, signal)) {
      for (const row of rows) {
        const change = Change.parse(row);
        length += change.diff.length;
        if (length > MAX_DIFF_LENGTH) return { files, cut: 'the diffs are too large to be read in full' };
        files.push(change);
      }
    }
  } catch (error) {
    if (files.length === 0) throw error;
    if (error instanceof HttpError) return { files, cut: error.message };
    if (error instanceof z.ZodError) return { files, cut: 'GitLab described a file in an unexpected form' };
    throw error;
  }
  return { files, cut: undefined };
}

/**
 * The count of the merge request is what tells: it ends in `+` when GitLab stopped counting. No flag of the
 * lists is relied on, since its absence proves nothing.
 */
function summary(found: MergeRequest, { files, cut }: Changes, expectedSha: string | undefined) {
  const count = found.changes_count ?? String(files.length);
  const partial = cut !== undefined || count !== String(files.length) || files.length >= GITLAB_MAX_FILES;
  const omitted = files.map(omission).filter((why) => why !== undefined);
  const left = omitted.filter((why) => why !== 'binary');
  const moved = expectedSha !== undefined && found.sha !== null && found.sha !== expectedSha;
  const warnings = [
    ...(partial
      ? [`The list of files is incomplete: ${files.length} are shown, the merge request has more.`]
      : []),
    ...(cut === undefined ? [] : [`Reading ended early: ${cut}.`]),
    ...(left.length > 0
      ? [`GitLab left out the diffs of ${left.length} files (diff_omitted): ${counted(left)}.`]
      : []),
    ...(omitted.length > left.length
      ? [`Binary files, whose changes no diff shows: ${omitted.length - left.length}.`]
      : []),
    ...(moved ? [`These are the changes at ${found.sha}; this run is about ${expectedSha}.`] : []),
  ];
  return {
    complete: !partial && left.length === 0,
    warnings,
    ...(partial ? {} : { file_count: files.length }),
  };
}

function file(change: Change) {
  const omitted = omission(change);
  return {
    path: change.new_path,
    ...(change.old_path === change.new_path ? {} : { old_path: change.old_path }),
    change: change.new_file
      ? 'added'
      : change.deleted_file
        ? 'deleted'
        : change.renamed_file
          ? 'renamed'
          : 'modified',
    ...(change.generated_file ? { generated: true } : {}),
    ...(omitted === undefined ? { diff: change.diff } : { diff_omitted: omitted }),
  };
}

/** What stands in the place of a diff of bytes. Diffs of text begin with `@@`. */
const BINARY = /^Binary files .* differ\n?$/;

type Omission = 'too large' | 'collapsed' | 'generated' | 'binary';

/** An empty diff is normal for a mode change, a pure rename or an empty file. */
function omission(change: Change): Omission | undefined {
  if (BINARY.test(change.diff)) return 'binary';
  if (change.diff !== '') return undefined;
  if (change.too_large) return 'too large';
  if (change.generated_file && change.collapsed) return 'generated';
  return change.collapsed ? 'collapsed' : undefined;
}

/** `2 too large, 1 collapsed` */
function counted(omissions: readonly Omission[]): string {
  const kinds = [...new Set(omissions)];
  return kinds.map((kind) => `${omissions.filter((one) => one === kind).length} ${kind}`).join(', ');
}

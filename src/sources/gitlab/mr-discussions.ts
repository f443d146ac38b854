import { z } from 'zod';
import type { Tool } from '../../agent/tools/port.ts';
import { type GitLabApi, projectPath } from '../../http/gitlab.ts';
import type { SourceScope } from '../port.ts';
import { withoutAgentParts } from './agent-note.ts';
import { type Developers, developersOf } from './developers.ts';
import { gitlabTool } from './gitlab-tool.ts';
import { jsonLines } from './json-lines.ts';
import { iid, outOfScope, project } from './scope.ts';

/** What somebody wrote whom the project does not trust. Nothing of the text is shown: there is no safe way to. */
const REDACTED = '[redacted: non-member comment]';
/** A note holds up to a million characters, and agents fold long transcripts into theirs: a page has to stay small. */
const PER_PAGE = 20;

const Position = z.object({
  old_path: z.string().nullish(),
  new_path: z.string().nullish(),
  old_line: z.number().nullish(),
  new_line: z.number().nullish(),
});
const Note = z.object({
  author: z.object({ id: z.number().int(), username: z.string() }).nullish(),
  created_at: z.string(),
  system: z.boolean(),
  body: z.string(),
  internal: z.boolean().nullish(),
  resolvable: z.boolean().nullish(),
  resolved: z.boolean().nullish(),
  position: Position.nullish(),
});
type Note = z.infer<typeof Note>;
const Discussion = z.object({ id: z.string(), notes: z.array(Note) });
type Discussion = z.infer<typeof Discussion>;

export interface DiscussionOptions {
  /** Word that opens the markers in agents' notes. */
  readonly markerPrefix?: string;
}

export function mrDiscussions(api: GitLabApi, scope: SourceScope, options: DiscussionOptions = {}): Tool {
  return gitlabTool({
    name: 'gitlab_get_mr_discussions',
    description:
      'What developers of the project and earlier agents wrote on the merge request, as JSON lines, one discussion a line.',
    notes: NOTES,
    schema: z.object({ project, iid }),
    async run(args, { signal }) {
      const refusal = outOfScope(scope, args);
      if (refusal !== undefined) return { kind: 'Error', message: refusal };
      const developers = developersOf(api, args.project, signal);
      const path = `projects/${projectPath(args.project)}/merge_requests/${args.iid}/discussions`;
      return jsonLines(api.pages(path, { per_page: PER_PAGE }, signal), {
        what: 'discussions',
        none: 'No developer of the project has written on this merge request.',
        async shown(rows) {
          const discussions: object[] = [];
          for (const row of rows) {
            const shown = await trusted(Discussion.parse(row), developers, options);
            if (shown !== undefined) discussions.push(shown);
          }
          return discussions;
        },
        missing: () => notLookedUp(developers),
      });
    },
  });
}

const NOTES = `Each line of \`gitlab_get_mr_discussions\` is \`{id, resolvable, resolved, notes: [{author, created_at, system, body, position}]}\`, oldest first. Comments of people who are not developers of the project are left out; where one stands between others its body is \`${REDACTED}\`, and nothing is known of it.
Notes of agents are shown without their transcripts. Use it to see what was said of earlier findings; do not repeat one that a developer has answered or resolved. Notes with \`internal: true\` are not meant for everybody: do not quote them.`;

/** Undefined when nobody in it is trusted. System notes are GitLab's own words. */
async function trusted(
  { id, notes }: Discussion,
  developers: Developers,
  options: DiscussionOptions,
): Promise<object | undefined> {
  const shown: object[] = [];
  let anyTrusted = false;
  for (const note of notes) {
    const isTrusted = note.system || (note.author != null && (await developers.has(note.author.id)));
    anyTrusted ||= isTrusted;
    shown.push(isTrusted ? trustedNote(note, options) : redactedNote(note));
  }
  if (!anyTrusted) return undefined;
  const resolvable = notes.filter((note) => note.resolvable);
  return {
    id,
    resolvable: resolvable.length > 0,
    resolved: resolvable.length > 0 && resolvable.every((note) => note.resolved),
    notes: shown,
  };
}

function trustedNote(
  { author, created_at, system, body, internal, position }: Note,
  options: DiscussionOptions,
) {
  return {
    author: author?.username,
    created_at,
    system,
    ...(internal ? { internal } : {}),
    body: system ? body : withoutAgentParts(body, options.markerPrefix),
    ...(position == null ? {} : { position: shownPosition(position) }),
  };
}

/** Neither who wrote it nor where: both are chosen by the writer. */
function redactedNote({ created_at, system }: Note) {
  return { created_at, system, body: REDACTED };
}

function shownPosition({ old_path, new_path, old_line, new_line }: z.infer<typeof Position>) {
  return {
    path: new_path ?? old_path,
    ...(old_path != null && old_path !== new_path ? { old_path } : {}),
    ...(old_line == null ? {} : { old_line }),
    ...(new_line == null ? {} : { new_line }),
  };
}

function notLookedUp(developers: Developers): string | undefined {
  const failures = developers.failures();
  if (failures === undefined) return undefined;
  const users = failures.count === 1 ? 'one user' : `${failures.count} users`;
  return `What ${users} wrote is withheld, since the access to the project could not be looked up (${failures.first}).`;
}

import { z } from 'zod';
import type { SourceScope } from '../port.ts';

/** Arguments that name what a run may read. */
export const project = z.string().min(1).max(512).describe('Full path of the project, as in the event');
export const iid = z
  .number()
  .int()
  .positive()
  .describe('Number of the merge request in its project, as in the event');
export const sha = z
  .string()
  .regex(/^[0-9a-f]{7,64}$/i, 'expected a commit SHA in hex')
  .describe('Commit SHA, as in the event');

export const ref = z
  .string()
  .min(1)
  .max(512)
  .describe(
    'Commit SHA of the event, or the target branch or its merge base (base_sha) of the merge request',
  );

/** What a call names; each tool names a part of it. */
export interface Asked {
  readonly project: string;
  readonly iid?: number;
  readonly sha?: string;
}

/** A sentence that says what is allowed, when the arguments name anything else. */
export function outOfScope(scope: SourceScope, asked: Asked): string | undefined {
  if (isAllowedProject(scope, asked.project)) return undefined;
  const wrong: string[] = [];
  if (!isOwnProject(scope, asked.project)) wrong.push(`project ${asked.project}`);
  if (asked.iid !== undefined && asked.iid !== scope.iid) wrong.push(`merge request ${asked.iid}`);
  if (asked.sha !== undefined && !isOwnCommit(scope, asked.sha)) wrong.push(`commit ${asked.sha}`);
  return wrong.length === 0 ? undefined : refusalOf(scope, wrong);
}

/** Names what was refused and everything that is allowed; `also` what else is, beside the commit. */
export function refusalOf(
  scope: SourceScope,
  wrong: readonly string[],
  also: readonly string[] = [],
): string {
  const { project, iid, sha, allowedProjects = [] } = scope;
  const others = allowedProjects.map((path) => JSON.stringify(path)).join(', ');
  const more = others === '' ? ' only.' : `, and anything in ${others}.`;
  return `Not allowed: ${wrong.join(', ')}. This run reads project "${project}", iid ${iid}, sha "${sha}"${also.map((one) => `, ${one}`).join('')}${more}`;
}

/** The workflow has opened the project: its merge requests, commits and jobs are not looked at one by one. */
export function isAllowedProject({ allowedProjects = [] }: SourceScope, project: string): boolean {
  return allowedProjects.some((path) => isSamePath(path, project));
}

/** The full SHA where an abbreviated one names the run's commit: GitLab does not always take the short form. */
export function fullSha(scope: SourceScope, { project, sha }: { project: string; sha: string }): string {
  return isOwnProject(scope, project) && isOwnCommit(scope, sha) ? scope.sha : sha;
}

/** Whether the arguments name the run's own merge request. */
export function isOwnMergeRequest(scope: SourceScope, asked: { project: string; iid: number }): boolean {
  return isOwnProject(scope, asked.project) && asked.iid === scope.iid;
}

function isOwnProject(scope: SourceScope, project: string): boolean {
  return isSamePath(scope.project, project);
}

function isOwnCommit(scope: SourceScope, sha: string): boolean {
  return abbreviates(sha, scope.sha);
}

/** Whether `text` is a commit's SHA or the start of it. */
export function abbreviates(text: string, fullSha: string): boolean {
  return /^[0-9a-f]{7,64}$/i.test(text) && fullSha.startsWith(text.toLowerCase());
}

/** GitLab does not tell paths apart by case. */
function isSamePath(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

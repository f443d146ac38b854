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

/** A sentence that says what is allowed, when the arguments name anything else. */
export function outOfScope(
  scope: SourceScope,
  asked: { readonly project: string; readonly iid?: number; readonly sha?: string },
): string | undefined {
  const wrong: string[] = [];
  if (asked.project.toLowerCase() !== scope.project.toLowerCase()) wrong.push(`project ${asked.project}`);
  if (asked.iid !== undefined && asked.iid !== scope.iid) wrong.push(`merge request ${asked.iid}`);
  // An abbreviated SHA of the run's commit names the same commit.
  if (asked.sha !== undefined && !scope.sha.startsWith(asked.sha.toLowerCase()))
    wrong.push(`commit ${asked.sha}`);
  if (wrong.length === 0) return undefined;
  const { project, iid, sha } = scope;
  return `Not allowed: ${wrong.join(', ')}. This run reads project "${project}", iid ${iid}, sha "${sha}" only.`;
}

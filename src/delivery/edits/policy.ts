import { deniedBy, foldedPath } from './reach/out-of-reach.ts';
import { pathGlob } from './reach/path-glob.ts';
import type { Refusal } from './refusal.ts';

/** What edits may reach. Of a workflow's configuration and of one merge request. */
export interface EditPolicy {
  /** Patterns of paths that may be edited; none: nothing may. */
  readonly allow: readonly string[];
  /** Patterns of paths that may not, besides those that never may. */
  readonly deny: readonly string[];
  /** Paths that the merge request changes, from the merge base. None: nothing may be edited. */
  readonly scope: readonly string[];
  /** All that the model was shown, and nothing else: what is not in it was made up. */
  readonly evidence: string;
}

/** Without `./` in front. */
export const normalPath = (path: string): string => path.replace(/^(\.\/+)+/, '');

/** Why the path may not be edited; undefined: it may. Throws on a pattern that could never match. */
export function pathRefusal(policy: EditPolicy, written: string): Refusal | undefined {
  const path = normalPath(written);
  const builtIn = deniedBy(path);
  if (builtIn !== undefined)
    return refused(`no edit ever reaches ${builtIn}: it decides what is built, checked or merged`);
  const configured = policy.deny.find((pattern) => denies(pattern, path));
  if (configured !== undefined) return refused(`the configuration denies ${configured}`);
  if (policy.scope.length === 0)
    return refused('it is not known what the merge request changes, so nothing is in scope');
  if (!policy.scope.includes(path)) return refused('the merge request does not change this file');
  if (policy.allow.length === 0) return refused('the configuration allows no path');
  if (!policy.allow.some((pattern) => pathGlob(pattern)(path)))
    return refused('no path that the configuration allows covers it');
  return undefined;
}

/** A denied path stays so in any spelling of case. */
const denies = (pattern: string, path: string): boolean =>
  pathGlob(pattern)(path) || pathGlob(pattern.toLowerCase())(foldedPath(path));

const refused = (message: string): Refusal => ({ reason: 'PathDenied', message });

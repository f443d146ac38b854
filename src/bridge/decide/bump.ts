import type { MergeRequestEvent } from '../events/merge-request.ts';
import type { WorkflowView } from './decision.ts';
import { matchesGlob } from './glob.ts';

/** Why a workflow for chart bumps leaves the merge request alone; undefined: it is a bump, or the workflow takes all. */
export function bumpRefusal(
  { spec }: WorkflowView,
  { labels, user, authorId }: Pick<MergeRequestEvent, 'labels' | 'user' | 'authorId'>,
): string | undefined {
  if (spec.delivery === undefined) return undefined;
  const { bumps } = spec.delivery;
  if (bumps.labels.some((label) => labels.includes(label))) return undefined;
  // The event names its actor only: what somebody else pushed to a bot's branch is not the bot's any more.
  if (
    user !== undefined &&
    user.id === authorId &&
    bumps.authors.some((glob) => matchesGlob(glob, user.name))
  )
    return undefined;
  const wanted = [
    ...(bumps.labels.length > 0 ? [`has none of the labels ${bumps.labels.join(', ')}`] : []),
    ...(bumps.authors.length > 0 ? [`is not by one of ${bumps.authors.join(', ')}`] : []),
  ];
  return `it is no bump: it ${wanted.join(' and ')}`;
}

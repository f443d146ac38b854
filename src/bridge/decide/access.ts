import type { EventUser } from '../events/shapes.ts';
import type { Facts, Question } from './decision.ts';

/** GitLab's Developer role: the least that may start anything. */
export const DEVELOPER = 30;

/** The questions about users that were not asked yet, each once. */
export function accessQuestions(
  { access }: Facts,
  users: readonly (EventUser | undefined)[],
): readonly Question[] {
  const ids = new Set(users.flatMap((user) => (user === undefined ? [] : [user.id])));
  return [...ids].filter((id) => access?.has(id) !== true).map((userId) => ({ kind: 'Access', userId }));
}

/** Why a user is not trusted; undefined: they are. What GitLab does not tell is no trust. */
export function denial({ access }: Facts, project: string, user: EventUser | undefined): string | undefined {
  if (user === undefined) return `the event names no user, so nobody's access to ${project} can be checked`;
  const level = access?.get(user.id);
  if (level === undefined) return `the access of ${user.name} to ${project} was not asked`;
  if (level.kind === 'Refused')
    return `GitLab answers ${level.status} when asked for the access of ${user.name} to ${project}: ${level.message}`;
  if (level.value >= DEVELOPER) return undefined;
  return `${user.name} has access level ${level.value} in ${project}; ${DEVELOPER} (Developer) is needed`;
}

/** Who pushed last, where GitLab remembers it. */
export const pusher = ({ pushAuthor }: Facts): EventUser | undefined =>
  pushAuthor?.kind === 'Ok' ? pushAuthor.value : undefined;

/**
 * The first reason not to trust what an event of itself would start: whoever caused the event and whoever pushed
 * what it is about must both be trusted, or a label that a Developer sets would run what a stranger has pushed.
 */
export function denialBehind(facts: Facts, project: string, user: EventUser | undefined): string | undefined {
  const { pushAuthor } = facts;
  if (pushAuthor?.kind === 'Refused')
    return `GitLab answers ${pushAuthor.status} when asked who pushed last: ${pushAuthor.message}`;
  const author = pusher(facts);
  return denial(facts, project, user) ?? (author && denial(facts, project, author));
}

import { z } from 'zod';
import { HttpError } from '../../http/client.ts';
import type { GitLabApi } from '../../http/gitlab.ts';

/** Developer, the level from which on people may start a run as well. */
const DEVELOPER = 30;

const Member = z.object({
  access_level: z.number().int(),
  state: z.string().nullish(),
  membership_state: z.string().nullish(),
});

export interface Developers {
  /** Whether a user is a Developer or more in the project, groups above it included. Asked once for each user. */
  has(userId: number): Promise<boolean>;
  /** How many users could not be looked up, and why the first of them could not. */
  failures(): { readonly count: number; readonly first: string } | undefined;
}

/** For one call of a tool: access may be withdrawn at any time. Who cannot be looked up is none. */
export function developersOf(api: GitLabApi, project: string, signal: AbortSignal): Developers {
  const known = new Map<number, boolean>();
  const failures: string[] = [];
  return {
    async has(userId) {
      const before = known.get(userId);
      if (before !== undefined) return before;
      const is = await isDeveloper(api, project, userId, signal).catch((error: unknown) => {
        if (!(error instanceof HttpError) && !(error instanceof z.ZodError)) throw error;
        failures.push(error instanceof HttpError ? error.message : 'GitLab answered in an unexpected form');
        return false;
      });
      known.set(userId, is);
      return is;
    },
    failures() {
      const [first] = failures;
      return first === undefined ? undefined : { count: failures.length, first };
    },
  };
}

async function isDeveloper(
  api: GitLabApi,
  project: string,
  userId: number,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const shown = await api.resources(signal).members.show(project, userId, { includeInherited: true });
    const { access_level, state, membership_state } = Member.parse(shown);
    return access_level >= DEVELOPER && state !== 'blocked' && (membership_state ?? 'active') === 'active';
  } catch (error) {
    // No member. The project itself was seen just now.
    if (error instanceof HttpError && error.status === 404) return false;
    throw error;
  }
}

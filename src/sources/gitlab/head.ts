import { z } from 'zod';
import { createGitLabApi } from '../../http/gitlab.ts';
import type { GitLabSource } from './tools.ts';

const Head = z.object({ sha: z.string().min(1) });

/** Head commit of a merge request, asked with the read token. Throws `HttpError`, or when there is no head. */
export async function headCommit(
  source: GitLabSource,
  { project, iid }: { readonly project: string; readonly iid: number },
  signal?: AbortSignal,
): Promise<string> {
  const shown = await createGitLabApi(source).resources(signal).mergeRequests.show(project, iid);
  const head = Head.safeParse(shown);
  if (head.success) return head.data.sha;
  throw new Error(`${project}!${iid} has no head commit; name the commit in the event's sha`);
}

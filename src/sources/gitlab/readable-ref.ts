import { z } from 'zod';
import type { GitLabApi } from '../../http/gitlab.ts';
import type { SourceScope } from '../port.ts';
import { abbreviates, isAllowedProject, outOfScope, refusalOf } from './scope.ts';

export type ReadableRef =
  /** As GitLab is asked for it. */
  { readonly kind: 'Ref'; readonly ref: string } | { readonly kind: 'Refused'; readonly message: string };

const MergeRequest = z.object({
  target_branch: z.string(),
  diff_refs: z.object({ base_sha: z.string().nullish() }).nullish(),
});

/**
 * Files and archives are read at the run's commit, at the target branch and at the merge base: what the change is, and
 * what it changes. Other branches may hold what others work on. A project that the workflow allows is open at any ref.
 */
export async function readableRef(
  api: GitLabApi,
  scope: SourceScope,
  { project, ref }: { readonly project: string; readonly ref: string },
  signal: AbortSignal,
): Promise<ReadableRef> {
  const refusal = outOfScope(scope, { project });
  if (refusal !== undefined) return { kind: 'Refused', message: refusal };
  if (isAllowedProject(scope, project)) return { kind: 'Ref', ref };
  if (abbreviates(ref, scope.sha)) return { kind: 'Ref', ref: scope.sha };
  const shown = await api.resources(signal).mergeRequests.show(scope.project, scope.iid);
  const { target_branch: target, diff_refs } = MergeRequest.parse(shown);
  const base = diff_refs?.base_sha ?? undefined;
  if (ref === target) return { kind: 'Ref', ref: target };
  if (base !== undefined && abbreviates(ref, base)) return { kind: 'Ref', ref: base };
  const also = [`target branch "${target}"`, ...(base === undefined ? [] : [`merge base "${base}"`])];
  return { kind: 'Refused', message: refusalOf(scope, [`ref ${ref}`], also) };
}

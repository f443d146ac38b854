import type { AgentRun } from '../../crds/agent-run.ts';
import type { AgentThreads } from '../../notes/port.ts';
import { isTrue } from '../conditions.ts';

export interface RepetitionInput {
  readonly run: AgentRun;
  /** Commit that the run would look at. */
  readonly sha: string;
  /** Most automatic runs on one merge request. */
  readonly limit: number;
  /** Other automatic runs of the workflow on the merge request, as far as they are kept. */
  readonly rivals: readonly AgentRun[];
  /** What stands on the merge request, which is longer than runs are kept; undefined: nothing is posted there. */
  readonly threads: AgentThreads | undefined;
}

/** Why an automatic run is one too many; undefined: it is not. By runs and by notes, whichever know more. */
export function repetitionOf({
  run,
  sha,
  limit,
  rivals,
  threads,
}: RepetitionInput):
  | { readonly reason: 'SkippedDuplicate' | 'RateLimited'; readonly message: string }
  | undefined {
  const admitted = rivals.filter(({ status }) => isTrue(status?.conditions, 'Admitted'));
  const same = admitted.find(({ status }) => status?.sha === sha);
  if (same !== undefined)
    return {
      reason: 'SkippedDuplicate',
      message: `AgentRun ${same.metadata.name} of the same workflow looks at ${sha.slice(0, 8)} already`,
    };
  const others = [...(threads?.commits.get(sha) ?? [])].filter((uid) => uid !== run.metadata.uid);
  if (others.length > 0)
    return {
      reason: 'SkippedDuplicate',
      message: `A note of the same workflow tells of ${sha.slice(0, 8)} already`,
    };
  const count = Math.max(threads?.count ?? 0, admitted.length);
  if (count < limit) return undefined;
  return {
    reason: 'RateLimited',
    message: `The workflow has run ${count} times on the merge request by itself, and limits.maxRunsPerMergeRequest is ${limit}; commands and replies still start it`,
  };
}

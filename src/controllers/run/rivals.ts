import type { AgentRun } from '../../crds/agent-run.ts';
import type { AgentWorkflow } from '../../crds/agent-workflow.ts';
import { isTerminal } from '../../crds/reasons.ts';
import { isTrue } from '../conditions.ts';

/** What the other automatic runs of a workflow on a merge request mean for one of them. */
export type Rivalry =
  | { readonly kind: 'None' }
  /** A newer one was admitted: what this one says would be out of date. */
  | { readonly kind: 'Superseded'; readonly by: string }
  | { readonly kind: 'Behind'; readonly run: string }
  /** One is under way already, and one is enough. */
  | { readonly kind: 'Duplicate'; readonly of: string };

export const NO_RIVALRY: Rivalry = { kind: 'None' };

/** Runs that nobody asked for. What a person starts, by hand, command or reply, is neither stopped nor kept back. */
export const isAutomatic = ({ spec }: AgentRun): boolean =>
  spec.trigger.kind === 'Pipeline' || spec.trigger.kind === 'MergeRequest';

/** Whether two runs are the same workflow's, on the same merge request. */
export function isRival(run: AgentRun, other: AgentRun): boolean {
  return (
    other.metadata.uid !== run.metadata.uid &&
    other.metadata.namespace === run.metadata.namespace &&
    other.spec.workflowRef.name === run.spec.workflowRef.name &&
    other.spec.mergeRequest.project === run.spec.mergeRequest.project &&
    other.spec.mergeRequest.iid === run.spec.mergeRequest.iid &&
    isAutomatic(run) &&
    isAutomatic(other)
  );
}

/** `rivals` as `isRival` knows them, ended ones among them. */
export function rivalryOf(
  run: AgentRun,
  policy: AgentWorkflow['spec']['concurrency'],
  rivals: readonly AgentRun[],
): Rivalry {
  switch (policy) {
    case 'Supersede': {
      // One that was refused, or waits to be looked at, takes nobody's place.
      const newer = rivals
        .filter((rival) => isAdmitted(rival) && compare(run, rival) < 0)
        .toSorted(compare)
        .at(-1);
      return newer === undefined ? NO_RIVALRY : { kind: 'Superseded', by: nameOf(newer) };
    }
    case 'Queue': {
      if (hasBegun(run)) return NO_RIVALRY;
      const before = underWay(rivals)
        .filter((rival) => hasBegun(rival) || compare(rival, run) < 0)
        .toSorted(compare)[0];
      return before === undefined ? NO_RIVALRY : { kind: 'Behind', run: nameOf(before) };
    }
    case 'Skip': {
      if (isAdmitted(run)) return NO_RIVALRY;
      const first = underWay(rivals)
        .filter((rival) => isAdmitted(rival) || compare(rival, run) < 0)
        .toSorted(compare)[0];
      return first === undefined ? NO_RIVALRY : { kind: 'Duplicate', of: nameOf(first) };
    }
    default:
      return policy satisfies never;
  }
}

const underWay = (runs: readonly AgentRun[]): readonly AgentRun[] =>
  runs.filter(({ status }) => !isTerminal(status?.phase));

const isAdmitted = ({ status }: AgentRun): boolean => isTrue(status?.conditions, 'Admitted');

/** It waits for nobody any more, so that two never wait for each other. */
const hasBegun = ({ status }: AgentRun): boolean =>
  status?.phase === 'Running' || status?.phase === 'Finishing';

/** Creation times have whole seconds: within one, pipelines go by their ids, then what was taken up first is first. */
function compare(a: AgentRun, b: AgentRun): number {
  const time = createdMs(a) - createdMs(b);
  if (time !== 0 && !Number.isNaN(time)) return time;
  const pipelines = pipelineOf(a) - pipelineOf(b);
  if (pipelines !== 0 && !Number.isNaN(pipelines)) return pipelines;
  const start = startMs(a) - startMs(b);
  if (start !== 0 && !Number.isNaN(start)) return start;
  return (a.metadata.uid ?? '') < (b.metadata.uid ?? '') ? -1 : 1;
}

const createdMs = ({ metadata }: AgentRun): number => Date.parse(metadata.creationTimestamp ?? '');

const startMs = ({ status }: AgentRun): number => Date.parse(status?.startTime ?? '');

const pipelineOf = ({ spec }: AgentRun): number =>
  spec.trigger.kind === 'Pipeline' ? Number(spec.trigger.eventId) : Number.NaN;

const nameOf = ({ metadata }: AgentRun): string => metadata.name ?? '';

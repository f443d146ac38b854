import { DEFAULT_LIMITS } from '../../agent/limits.ts';
import type { AgentRun } from '../../crds/agent-run.ts';
import type { AgentWorkflow } from '../../crds/agent-workflow.ts';
import { parseDuration } from '../../crds/duration.ts';

/** What a run does, after its own fields and its workflow's are laid over each other. */
export interface EffectiveRun {
  readonly publishesNote: boolean;
  readonly internalNote: boolean;
  /** While the run goes on. */
  readonly showsProgress: boolean;
  /** Undefined: the run works without a sandbox. */
  readonly pool: { readonly namespace: string; readonly name: string } | undefined;
  readonly timeoutMs: number;
  readonly maxIterations: number;
  /** Most runs on one merge request that nobody asked for. */
  readonly maxRunsPerMergeRequest: number;
  readonly contextTokens: number;
  readonly budgetUsd: number | undefined;
  readonly ttlMs: { readonly success: number; readonly failure: number };
}

/**
 * SQS keeps a message for 14 days at most, and a run's name is what makes a redelivery harmless: what the
 * bridge made lives a day longer than that, whatever TTL is asked for.
 */
const BRIDGE_RUN_MIN_TTL_MS = 15 * 24 * 3_600_000;
const DEFAULTS = {
  timeout: '25m',
  maxRunsPerMergeRequest: 5,
  ttl: { success: '360h', failure: '720h' },
};

export function effectiveRun(run: AgentRun, workflow: AgentWorkflow | undefined): EffectiveRun {
  const project = workflow?.spec.projects.find((entry) => entry.path === run.spec.mergeRequest.project);
  const limits = { ...workflow?.spec.limits, ...project?.limits, ...run.spec.limits };
  const sandbox = run.spec.sandbox ?? workflow?.spec.sandbox;
  const pool = sandbox?.poolRef;
  const publishesNote =
    run.spec.publish.kind === 'Note' && (workflow?.spec.publish.kind ?? 'Note') === 'Note';
  return {
    publishesNote,
    showsProgress: publishesNote && (workflow?.spec.publish.progress ?? false),
    internalNote: project?.internal ?? workflow?.spec.publish.internal ?? true,
    pool: pool && { name: pool.name, namespace: pool.namespace ?? run.metadata.namespace ?? '' },
    timeoutMs: parseDuration(limits.timeout ?? DEFAULTS.timeout),
    maxIterations: limits.maxIterations ?? DEFAULT_LIMITS.maxIterations,
    maxRunsPerMergeRequest: limits.maxRunsPerMergeRequest ?? DEFAULTS.maxRunsPerMergeRequest,
    contextTokens: limits.contextTokens ?? DEFAULT_LIMITS.contextTokens,
    budgetUsd: limits.budgetUSD === undefined ? undefined : Number(limits.budgetUSD),
    ttlMs: timeToLive(run, workflow),
  };
}

function timeToLive(run: AgentRun, workflow: AgentWorkflow | undefined): EffectiveRun['ttlMs'] {
  const own = run.spec.ttlSecondsAfterFinished;
  const fromWorkflow = workflow?.spec.ttlAfterFinished;
  const least = run.spec.trigger.kind === 'Manual' ? 0 : BRIDGE_RUN_MIN_TTL_MS;
  const of = (end: 'success' | 'failure'): number => {
    const seconds = own?.[end];
    const wanted =
      seconds === undefined ? parseDuration(fromWorkflow?.[end] ?? DEFAULTS.ttl[end]) : seconds * 1000;
    return Math.max(least, wanted);
  };
  return { success: of('success'), failure: of('failure') };
}

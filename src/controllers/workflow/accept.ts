import type { AgentWorkflow } from '../../crds/agent-workflow.ts';
import type { KeptSpec } from './kept.ts';
import { specProblems } from './problems.ts';

export type Acceptance =
  /** New runs use the spec as it stands. */
  | { readonly kind: 'Accepted' }
  /** They use the kept spec, where there is one. */
  | {
      readonly kind: 'Refused';
      readonly reason: 'Invalid' | 'UnresolvedRefs';
      readonly message: string;
      readonly kept: KeptSpec | undefined;
    };

/**
 * Whether a workflow's spec takes effect. A spec that makes no sense never does. One whose references do not resolve
 * waits for them while an earlier generation can go on; once accepted, a Secret that goes does not bring that one back.
 * Pure.
 */
export function acceptance(
  { metadata, spec, status }: AgentWorkflow,
  resolved: boolean,
  kept: KeptSpec | undefined,
): Acceptance {
  const problems = specProblems(spec);
  if (problems.length > 0) return { kind: 'Refused', reason: 'Invalid', message: problems.join('; '), kept };
  const { generation } = metadata;
  const isNew = status?.acceptedGeneration !== generation && kept?.generation !== generation;
  if (resolved || kept === undefined || !isNew) return { kind: 'Accepted' };
  return {
    kind: 'Refused',
    reason: 'UnresolvedRefs',
    message: 'What this generation names cannot be resolved: see the condition ResolvedRefs',
    kept,
  };
}

/**
 * A workflow as new runs use it: as it stands, or with the spec that was accepted before. A generation that nobody has
 * looked at yet counts unless it makes no sense, so that a run that is applied together with it finds it; a run says
 * itself what it misses. `suspend` counts at once, whatever else is wrong. Pure.
 */
export function inForce(
  workflow: AgentWorkflow,
  kept: (workflow: AgentWorkflow) => KeptSpec | undefined,
): AgentWorkflow {
  const { metadata, spec, status } = workflow;
  if (status?.acceptedGeneration === metadata.generation) return workflow;
  const isLookedAt = status?.observedGeneration === metadata.generation;
  if (!isLookedAt && specProblems(spec).length === 0) return workflow;
  return withKept(workflow, kept(workflow));
}

/** The generation that `metadata` has then is that of the spec. */
export function withKept(workflow: AgentWorkflow, kept: KeptSpec | undefined): AgentWorkflow {
  if (kept === undefined) return workflow;
  const metadata = { ...workflow.metadata, generation: kept.generation };
  return { ...workflow, metadata, spec: { ...kept.spec, suspend: workflow.spec.suspend } };
}

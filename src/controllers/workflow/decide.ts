import type { AgentWorkflow, AgentWorkflowStatus } from '../../crds/agent-workflow.ts';
import type { Condition } from '../../crds/meta.ts';
import { clip } from '../../crds/shapes.ts';
import { changedCondition } from '../conditions.ts';
import type { Acceptance } from './accept.ts';

export interface ReferenceCheck {
  /** The field, `spec.model.apiKeySecretRef`. */
  readonly field: string;
  readonly ok: boolean;
  /** NotFound, WrongTier, KeyMissing, …; the condition's reason when this is the first that failed. */
  readonly reason?: string;
  readonly message?: string;
}

export interface ProjectCheck {
  readonly path: string;
  readonly ready: boolean;
  readonly botUserId?: number;
  readonly message?: string;
}

export interface WorkflowObserved {
  readonly workflow: AgentWorkflow;
  /** Of the spec as it stands. */
  readonly references: readonly ReferenceCheck[];
  readonly acceptance: Acceptance;
  /** Of the spec that new runs use. */
  readonly projects: readonly ProjectCheck[];
  readonly activeRuns: number;
}

/** The whole next status of a workflow. Pure. */
export function decideWorkflow(observed: WorkflowObserved, now: Date): AgentWorkflowStatus {
  const { workflow, references, acceptance, projects, activeRuns } = observed;
  const generation = workflow.metadata.generation;
  const refused = acceptance.kind === 'Refused' ? acceptance : undefined;
  const acceptedGeneration = refused === undefined ? generation : refused.kept?.generation;
  const broken = references.filter((check) => !check.ok);
  const notReady = projects.filter((project) => !project.ready);
  const accepted = condition(
    'Accepted',
    refused === undefined,
    refused?.reason ?? 'Accepted',
    refused === undefined ? 'New runs use this spec' : `${refused.message}. ${goingOn()}`,
  );
  const resolved = condition(
    'ResolvedRefs',
    broken.length === 0,
    broken[0]?.reason ?? 'Resolved',
    broken.length === 0
      ? 'Everything that the spec names exists and has the right tier'
      : broken.map(({ field, message }) => `${field}: ${message ?? 'cannot be resolved'}`).join('; '),
  );
  const ready = readiness();
  return {
    conditions: [accepted, resolved, ready],
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    ...(acceptedGeneration === undefined ? {} : { acceptedGeneration }),
    projects: projects.map(({ path, ready: isReady, botUserId, message }) => ({
      path,
      ready: isReady,
      ...(botUserId === undefined ? {} : { botUserId }),
      ...(message === undefined ? {} : { message: clip(message, 512) }),
    })),
    activeRuns,
    trigger: workflow.spec.triggers.map(({ event }) => event).join(',') || 'None',
    projectsReady: `${projects.length - notReady.length}/${projects.length}`,
  };

  function goingOn(): string {
    return acceptedGeneration === undefined
      ? 'No earlier generation was accepted'
      : `New runs use generation ${acceptedGeneration} until generation ${generation} is mended`;
  }

  function readiness(): Condition {
    if (workflow.spec.suspend)
      return condition('Ready', false, 'Suspended', 'spec.suspend is true: no new run starts');
    if (refused !== undefined)
      return condition('Ready', false, 'NotAccepted', `See the condition Accepted. ${goingOn()}`);
    if (broken.length > 0)
      return condition('Ready', false, 'UnresolvedRefs', 'See the condition ResolvedRefs');
    if (notReady.length > 0)
      return condition(
        'Ready',
        false,
        'ProjectsNotReady',
        notReady.map(({ path, message }) => `${path}: ${message ?? 'not ready'}`).join('; '),
      );
    return condition('Ready', true, 'Ready', `${projects.length} project(s) are served`);
  }

  function condition(type: string, ok: boolean, reason: string, message: string): Condition {
    return changedCondition(
      workflow.status?.conditions,
      { type, status: ok ? 'True' : 'False', reason, message },
      { now, generation: workflow.metadata.generation },
    );
  }
}

import type { PipelineEvent } from '../events.ts';
import type { Trigger } from './rules.ts';
import type { RunCause } from './run-name.ts';

/** What a decision must know of a workflow; an `AgentWorkflow` is one. */
export interface WorkflowView {
  readonly metadata: { readonly name?: string; readonly namespace?: string };
  readonly spec: {
    readonly suspend?: boolean | undefined;
    readonly triggers?: readonly Trigger[] | undefined;
    readonly projects?: readonly { readonly path: string }[] | undefined;
  };
}

export type SkipReason =
  | 'EventNotHandled'
  | 'NotMergeRequestPipeline'
  | 'ForeignProject'
  | 'NoWorkflow'
  | 'Suspended'
  | 'NotTriggered'
  /** GitLab tells every step of a pipeline; refusing the steps on the way is no news to anybody. */
  | 'PipelineNotFinished'
  | 'SkippedRule'
  | 'InvalidRule';

export interface CreateRun<W extends WorkflowView = WorkflowView> {
  readonly kind: 'CreateRun';
  readonly workflow: W;
  readonly cause: RunCause;
  /** Full path of the project. */
  readonly project: string;
  readonly user: PipelineEvent['user'];
  /** Which rule allowed it. */
  readonly message: string;
}

export interface Skip<W extends WorkflowView = WorkflowView> {
  readonly kind: 'Skip';
  /** Absent when the event concerns no workflow at all. */
  readonly workflow?: W;
  readonly reason: SkipReason;
  readonly message: string;
}

export type Decision<W extends WorkflowView = WorkflowView> = CreateRun<W> | Skip<W>;

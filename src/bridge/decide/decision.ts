import type { AgentRun } from '../../crds/agent-run.ts';
import type { MergeRequestFacts, NoteOutcome, ThreadNote } from '../../notes/port.ts';
import type { EventUser } from '../events/shapes.ts';
import type { SkipReason } from './reasons.ts';
import type { Trigger } from './rules.ts';
import type { RunCause } from './run-name.ts';

/** What a decision must know of a workflow; an `AgentWorkflow` is one. */
export interface WorkflowView {
  readonly metadata: { readonly name?: string; readonly namespace?: string };
  readonly spec: {
    readonly description?: string | undefined;
    readonly suspend?: boolean | undefined;
    readonly triggers?: readonly Trigger[] | undefined;
    readonly commands?: { readonly aliases?: readonly string[] | undefined } | undefined;
    readonly projects?: readonly { readonly path: string }[] | undefined;
    readonly delivery?:
      | { readonly bumps: { readonly labels: readonly string[]; readonly authors: readonly string[] } }
      | undefined;
  };
  readonly status?: {
    readonly projects?:
      | readonly { readonly path: string; readonly botUserId?: number | undefined }[]
      | undefined;
  };
}

/** What GitLab was asked, one question after the other; absent: not asked yet. */
export interface Facts {
  /** Own user of the operator's token. */
  readonly self?: NoteOutcome<number>;
  /** Access level by user id. */
  readonly access?: ReadonlyMap<number, NoteOutcome<number>>;
  readonly mergeRequest?: NoteOutcome<Pick<MergeRequestFacts, 'headPipelineId'>>;
  readonly pushAuthor?: NoteOutcome<EventUser | undefined>;
  /** The discussion that the note stands in. */
  readonly thread?: NoteOutcome<readonly ThreadNote[]>;
}

export type Question =
  | { readonly kind: 'Self' }
  | { readonly kind: 'Access'; readonly userId: number }
  | { readonly kind: 'MergeRequest' }
  | { readonly kind: 'PushAuthor' }
  | { readonly kind: 'Thread'; readonly discussionId: string };

/** Everything that a decision rests on beside the event. */
export interface World<W extends WorkflowView = WorkflowView> {
  readonly workflows: readonly W[];
  /** Runs on the event's merge request that this process knows of. */
  readonly runs: readonly AgentRun[];
  /** Word that begins a command. */
  readonly commandPrefix: string;
  readonly facts: Facts;
}

export type Verdict<W extends WorkflowView = WorkflowView> =
  /** Ask these of GitLab, and decide again. Never empty. */
  | { readonly kind: 'Ask'; readonly questions: readonly Question[] }
  | { readonly kind: 'Decided'; readonly decisions: readonly Decision<W>[] };

export type Decision<W extends WorkflowView = WorkflowView> =
  | CreateRun<W>
  | ResolveThreads<W>
  | Answer<W>
  | Skip<W>;

export interface CreateRun<W extends WorkflowView = WorkflowView> {
  readonly kind: 'CreateRun';
  readonly workflow: W;
  readonly cause: RunCause;
  /** Full path of the project. */
  readonly project: string;
  readonly user: EventUser | undefined;
  /** Why, for people. */
  readonly message: string;
  /** What the user asked for, in their words. */
  readonly request?: string;
  readonly noteId?: number;
  /** The session that is gone on with, and where its answer goes. */
  readonly session?: { readonly id: string; readonly discussionId: string };
}

/** The threads that the workflow's bot began are of the past. */
export interface ResolveThreads<W extends WorkflowView = WorkflowView> {
  readonly kind: 'ResolveThreads';
  readonly workflow: W;
  readonly project: string;
  readonly iid: number;
  /** Threads about this commit stay. */
  readonly exceptSha?: string;
  readonly message: string;
}

/** Words of our own to whoever wrote a note. */
export interface Answer<W extends WorkflowView = WorkflowView> {
  readonly kind: 'Answer';
  readonly to: {
    readonly project: string;
    readonly iid: number;
    readonly discussionId: string;
    readonly noteId: number;
  };
  readonly text: string;
  readonly what: 'Help' | 'Status' | 'Cancel' | 'Approval' | 'Refusal';
  /** The question of a run that is answered before these words say so. */
  readonly approval?: {
    readonly run: AgentRun;
    readonly id: string;
    /** Value of the annotation: the verdict, who, and by which note. */
    readonly text: string;
  };
  /** Runs that are cancelled before the answer says so. */
  readonly cancel?: readonly AgentRun[];
  /** Why nothing was started; absent when what was asked for was done. */
  readonly skip?: Skip<W>;
}

export interface Skip<W extends WorkflowView = WorkflowView> {
  readonly kind: 'Skip';
  /** Absent when the event concerns no workflow at all. */
  readonly workflow?: W;
  readonly reason: SkipReason;
  readonly message: string;
}

export const decided = <W extends WorkflowView>(...decisions: readonly Decision<W>[]): Verdict<W> => ({
  kind: 'Decided',
  decisions,
});

export const skip = (reason: SkipReason, message: string) => ({ kind: 'Skip', reason, message }) as const;

/** The workflows that name a project. */
export const concerning = <W extends WorkflowView>(workflows: readonly W[], project: string): readonly W[] =>
  workflows.filter(({ spec }) => spec.projects?.some(({ path }) => path === project));

export const nameOf = ({ metadata }: WorkflowView): string => metadata.name ?? '';

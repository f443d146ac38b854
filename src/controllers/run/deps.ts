import type { Logger } from 'pino';
import type { Model } from '../../agent/models/port.ts';
import type { AgentRun } from '../../crds/agent-run.ts';
import type { AgentWorkflow } from '../../crds/agent-workflow.ts';
import type { Approval } from '../../crds/approval.ts';
import type { DeliverParts } from '../../delivery/deliver.ts';
import type { BumpReader, BumpWriter, Helm } from '../../delivery/port.ts';
import type { DeliveryPromptTexts } from '../../delivery/prompts/system.ts';
import type { Clock } from '../../kube/clock.ts';
import type { Exclusively } from '../../kube/exclusive.ts';
import type { EventRecorder, KubeClient, ObjectRef } from '../../kube/port.ts';
import type { MergeRequests, NotesFactory, Threads } from '../../notes/port.ts';
import type { Sandbox, SandboxProvider } from '../../sandbox/port.ts';
import type { Resolved } from '../../settings/references.ts';
import type { ActionToken } from '../../settings/tokens.ts';
import type { SourceFactory, ToolServers } from '../../sources/port.ts';
import type { ObjectStore } from '../../store/port.ts';
import type { WorkflowPins } from '../workflow/pins.ts';

export interface RunMetrics {
  /** Called once per run; `tookSeconds` is absent for a run that was never taken up. */
  ended(run: AgentRun, reason: string, tookSeconds: number | undefined): void;
  step(kind: string, seconds: number): void;
  /** A run on a chart bump ended by its own judgement. */
  delivered(workflow: string, outcome: string): void;
  /** A call that waited for approval waits no more. */
  approval(workflow: string, state: Approval['state']): void;
}

export interface DeliveryMeans extends Pick<DeliverParts, 'charts' | 'live' | 'testimony'> {
  readonly reader: BumpReader;
  readonly writer: BumpWriter;
  readonly prompts: DeliveryPromptTexts;
  helmIn(sandbox: Sandbox): Helm;
}

/** What the run controller is joined with in main.ts. Ports only. */
export interface RunDeps {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: RunMetrics;
  /** Replica and its incarnation, `operator-0/3`: another name after every start of the process. */
  readonly holderName: string;
  /** Whether that incarnation renews its Lease. */
  isHolderAlive(holderName: string): Promise<boolean>;
  /** Runs of one session that this process knows of, ended ones and the asking one among them. */
  sessionRuns(namespace: string, session: string): readonly AgentRun[];
  /** Other automatic runs of the same workflow on the same merge request, ended ones among them. */
  rivals(run: AgentRun): readonly AgentRun[];
  /** As new runs use it. */
  workflow(ref: ObjectRef): Promise<AgentWorkflow | undefined>;
  readonly pins: WorkflowPins;
  actionToken(workflow: AgentWorkflow, project: string): Promise<Resolved<ActionToken>>;
  model(workflow: AgentWorkflow, override: string | undefined): Promise<Resolved<Model>>;
  prompt(workflow: AgentWorkflow): Promise<Resolved<string>>;
  /** Whether what the data sources need can be had; asked before any money is spent. */
  sourceAccess(workflow: AgentWorkflow, project: string): Promise<Resolved<unknown>>;
  /** Removes every secret value that this process knows. */
  redact(text: string): string;
  readonly notes: NotesFactory;
  readonly mergeRequests: MergeRequests;
  readonly threads: Pick<Threads, 'notice'>;
  readonly exclusively: Exclusively;
  /** Whether a reply may go on with a session that has no AgentSession: one from before there were any. */
  readonly adoptsSessions: boolean;
  /** What a run on a chart bump reads and writes with; each with the token of its own tier. */
  delivery(workflow: AgentWorkflow, project: string): Promise<Resolved<DeliveryMeans>>;
  readonly sandboxes: SandboxProvider;
  readonly sources: SourceFactory;
  readonly toolServers: ToolServers;
  /** Word that begins a command in a note. */
  readonly commandPrefix: string;
  readonly store: ObjectStore;
}

import type { Tool } from '../agent/tools/port.ts';

/** What a run may read: tools refuse anything else, with a message that says what is allowed. */
export interface SourceScope {
  readonly project: string;
  readonly iid: number;
  readonly sha: string;
  /** Full paths whose merge requests, commits and jobs may all be read; default none. */
  readonly allowedProjects?: readonly string[];
}

export interface WorkflowRef {
  readonly namespace: string;
  readonly name: string;
  /** The ControllerRevision with the spec that counts for the run; left out: the workflow as new runs use it. */
  readonly revision?: string;
}

/** Builds the tools of the data sources that a workflow declares, with tool-tier credentials inside. */
export interface SourceFactory {
  toolsFor(request: {
    readonly workflow: WorkflowRef;
    readonly scope: SourceScope;
  }): Promise<readonly Tool[]>;
}

/** A call that a person has to allow first. */
export interface PermissionQuestion {
  /** As the model calls it. */
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The call's place in the run; see ToolContext. */
  readonly place: string;
}

export type Permission =
  | { readonly kind: 'Approved' }
  /** `message` is for the model: who refused, and what to do now. */
  | { readonly kind: 'Refused'; readonly message: string };

/** Resolves when somebody has decided, or nobody in time. Rejects with the signal's reason only. */
export type AskPermission = (question: PermissionQuestion, signal: AbortSignal) => Promise<Permission>;

/** Why a declared tool is not there. */
export interface ToolProblem {
  readonly kind: 'ToolServerUnavailable' | 'ToolWithheld';
  /** For people. May quote the server. */
  readonly message: string;
  /** For the system prompt, in our own words. */
  readonly note: string;
}

/** Tools whose servers are connected for one run. */
export interface OpenTools {
  readonly tools: readonly Tool[];
  readonly problems: readonly ToolProblem[];
  /** Ends every session, and every process that was started for one. */
  close(): Promise<void>;
}

export interface ToolServers {
  /** `signal` ends with the run. A server that is down is a problem of the answer, not a rejection. */
  open(request: {
    readonly workflow: WorkflowRef;
    readonly ask: AskPermission;
    readonly signal: AbortSignal;
  }): Promise<OpenTools>;
}

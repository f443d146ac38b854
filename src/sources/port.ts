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

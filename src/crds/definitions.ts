import type { z } from 'zod';
import { AGENT_RUNS, AgentRunSpec, AgentRunStatus } from './agent-run.ts';
import { AGENT_SESSIONS, AgentSessionSpec, AgentSessionStatus } from './agent-session.ts';
import { AGENT_WORKFLOWS, AgentWorkflowSpec, AgentWorkflowStatus } from './agent-workflow.ts';
import type { ResourceKind } from './meta.ts';
import { SANDBOX_POOLS, SandboxPoolSpec, SandboxPoolStatus } from './sandbox-pool.ts';
import type { CelRule } from './schema.ts';

export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'date';
  readonly jsonPath: string;
  readonly description: string;
  /** Only with `-o wide`. */
  readonly wide?: boolean;
}

/** Everything that a CustomResourceDefinition says besides its schemas. */
export interface Definition {
  readonly kind: ResourceKind;
  readonly shortName: string;
  readonly description: string;
  readonly spec: z.ZodType;
  readonly specDescription: string;
  readonly status: z.ZodType;
  readonly statusDescription: string;
  readonly rules: readonly CelRule[];
  readonly columns: readonly PrinterColumn[];
  readonly selectableFields: readonly string[];
  readonly scale?: { readonly spec: string; readonly status: string; readonly selector: string };
}

const AGE: PrinterColumn = {
  name: 'Age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description: 'Time since the object was created.',
};

const conditionPath = (type: string, field: string): string =>
  `.status.conditions[?(@.type=="${type}")].${field}`;

/** The name becomes a label value, which is shorter than a name may be. */
const nameFitsLabel: CelRule = {
  rule: 'size(self.metadata.name) <= 63',
  message: 'metadata.name must be at most 63 characters long, since it is used as a label value',
  fieldPath: '.metadata',
};

const agentRun: Definition = {
  kind: AGENT_RUNS,
  shortName: 'arun',
  description:
    'One analysis of one merge request: the work order and, when it has ended, the record. Apply one to start a run by hand; webhooks create the others.',
  spec: AgentRunSpec,
  specDescription: 'What to analyse and how. Fixed once created, except cancel and ttlSecondsAfterFinished.',
  status: AgentRunStatus,
  statusDescription: 'Where the run stands and what it came to. Written by the operator only.',
  rules: [
    {
      rule: '!has(oldSelf.status) || !has(oldSelf.status.phase) || has(self.status)',
      message: 'status cannot be removed once it has a phase: delete the AgentRun instead',
      fieldPath: '.status',
      reason: 'FieldValueForbidden',
    },
  ],
  columns: [
    {
      name: 'Workflow',
      type: 'string',
      jsonPath: '.spec.workflowRef.name',
      description: 'Workflow that runs.',
    },
    // One value has to hold project and number; the operator writes it first of all.
    { name: 'MR', type: 'string', jsonPath: '.status.mergeRequest', description: 'Merge request.' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase', description: 'Where the run stands.' },
    {
      name: 'Reason',
      type: 'string',
      jsonPath: conditionPath('Succeeded', 'reason'),
      description: 'Why it ended, or what it does.',
    },
    { name: 'Iter', type: 'integer', jsonPath: '.status.iterations', description: 'Model calls so far.' },
    {
      name: 'Cost',
      type: 'string',
      jsonPath: '.status.costUSD',
      description: 'US dollars, empty when not known.',
    },
    { name: 'Note', type: 'string', jsonPath: '.status.note.noteId', description: 'GitLab id of the note.' },
    AGE,
    {
      name: 'Project',
      type: 'string',
      jsonPath: '.spec.mergeRequest.project',
      description: 'Project.',
      wide: true,
    },
    {
      name: 'IID',
      type: 'integer',
      jsonPath: '.spec.mergeRequest.iid',
      description: 'Merge request.',
      wide: true,
    },
    {
      name: 'Model',
      type: 'string',
      jsonPath: '.status.model',
      description: 'Model that answers.',
      wide: true,
    },
    {
      name: 'Sandbox',
      type: 'string',
      jsonPath: '.status.sandbox.name',
      description: 'Sandbox.',
      wide: true,
    },
    {
      name: 'Session',
      type: 'string',
      jsonPath: '.status.session',
      description: 'AgentSession.',
      wide: true,
    },
    { name: 'SHA', type: 'string', jsonPath: '.status.sha', description: 'Commit looked at.', wide: true },
    {
      name: 'Duration',
      type: 'string',
      jsonPath: '.status.duration',
      description: 'From start to end.',
      wide: true,
    },
  ],
  selectableFields: [
    '.status.phase',
    '.spec.workflowRef.name',
    '.spec.mergeRequest.project',
    '.spec.mergeRequest.iid',
    '.spec.trigger.kind',
    '.status.session',
  ],
};

const agentSession: Definition = {
  kind: AGENT_SESSIONS,
  shortName: 'asess',
  description:
    'One conversation on one merge request, that is one GitLab discussion. A reply to a note of the agent goes on with it. Its name is the session id.',
  spec: AgentSessionSpec,
  specDescription: 'Which conversation this is.',
  status: AgentSessionStatus,
  statusDescription: 'Where the conversation is saved and what it has cost. Written by the operator only.',
  rules: [nameFitsLabel],
  columns: [
    { name: 'Workflow', type: 'string', jsonPath: '.spec.workflowRef.name', description: 'Workflow.' },
    { name: 'MR', type: 'string', jsonPath: '.status.mergeRequest', description: 'Merge request.' },
    { name: 'Runs', type: 'integer', jsonPath: '.status.runs', description: 'Runs that have ended.' },
    {
      name: 'Resumable',
      type: 'string',
      jsonPath: conditionPath('Resumable', 'status'),
      description: 'Whether a reply can go on with it.',
    },
    {
      name: 'Cost',
      type: 'string',
      jsonPath: '.status.costUSD',
      description: 'US dollars, empty when not known.',
    },
    { name: 'Expires', type: 'string', jsonPath: '.status.expiresAt', description: 'When it is deleted.' },
    AGE,
    {
      name: 'Project',
      type: 'string',
      jsonPath: '.spec.mergeRequest.project',
      description: 'Project.',
      wide: true,
    },
    {
      name: 'IID',
      type: 'integer',
      jsonPath: '.spec.mergeRequest.iid',
      description: 'Merge request.',
      wide: true,
    },
    {
      name: 'LastRun',
      type: 'string',
      jsonPath: '.status.lastRun.name',
      description: 'Last run.',
      wide: true,
    },
    {
      name: 'Archive',
      type: 'string',
      jsonPath: '.status.archive.key',
      description: 'Saved conversation.',
      wide: true,
    },
  ],
  selectableFields: ['.spec.workflowRef.name', '.spec.mergeRequest.project', '.spec.mergeRequest.iid'],
};

const agentWorkflow: Definition = {
  kind: AGENT_WORKFLOWS,
  shortName: 'awf',
  description:
    'How merge requests of some projects are analysed: prompt, triggers, model, limits, sandbox, tools and the Secrets with their tokens. Meant to be kept in Git.',
  spec: AgentWorkflowSpec,
  specDescription: 'The configuration. A run keeps what it started with.',
  status: AgentWorkflowStatus,
  statusDescription: 'Whether the configuration can be used. Written by the operator only.',
  rules: [nameFitsLabel],
  columns: [
    // One value has to hold several events, and several projects; the operator writes both.
    { name: 'Trigger', type: 'string', jsonPath: '.status.trigger', description: 'Events that start a run.' },
    {
      name: 'Projects',
      type: 'string',
      jsonPath: '.status.projectsReady',
      description: 'Projects that are ready, of all of them.',
    },
    {
      name: 'Pool',
      type: 'string',
      jsonPath: '.spec.sandbox.poolRef.name',
      description: 'SandboxPool, if any.',
    },
    {
      name: 'Ready',
      type: 'string',
      jsonPath: conditionPath('Ready', 'status'),
      description: 'Whether it works.',
    },
    { name: 'Active', type: 'integer', jsonPath: '.status.activeRuns', description: 'Runs under way.' },
    AGE,
    {
      name: 'Reason',
      type: 'string',
      jsonPath: conditionPath('Ready', 'reason'),
      description: 'Why it is ready or not.',
      wide: true,
    },
    {
      name: 'Suspended',
      type: 'boolean',
      jsonPath: '.spec.suspend',
      description: 'Whether it starts no runs.',
      wide: true,
    },
    { name: 'Model', type: 'string', jsonPath: '.spec.model.name', description: 'Model.', wide: true },
    {
      name: 'Provider',
      type: 'string',
      jsonPath: '.spec.model.provider',
      description: 'Provider.',
      wide: true,
    },
    {
      name: 'Publish',
      type: 'string',
      jsonPath: '.spec.publish.kind',
      description: 'Where answers go.',
      wide: true,
    },
    {
      name: 'Description',
      type: 'string',
      jsonPath: '.spec.description',
      description: 'What it does.',
      wide: true,
    },
  ],
  selectableFields: ['.spec.suspend', '.spec.model.name'],
};

const sandboxPool: Definition = {
  kind: SANDBOX_POOLS,
  shortName: 'spool',
  description:
    'Sandboxes of one kind that stand by, without network and credentials, so that a run can start at once. A run owns the one it claims; it is never used for another merge request.',
  spec: SandboxPoolSpec,
  specDescription: 'What the sandboxes are and how many stand by.',
  status: SandboxPoolStatus,
  statusDescription: 'How many there are. Written by the operator only.',
  rules: [nameFitsLabel],
  columns: [
    {
      name: 'Ready',
      type: 'integer',
      jsonPath: '.status.ready',
      description: 'Sandboxes that can be claimed.',
    },
    {
      name: 'Claimed',
      type: 'integer',
      jsonPath: '.status.claimed',
      description: 'Sandboxes that a run owns.',
    },
    {
      name: 'Lingering',
      type: 'integer',
      jsonPath: '.status.lingering',
      description: 'Sandboxes kept for a reply.',
    },
    {
      name: 'Desired',
      type: 'integer',
      jsonPath: '.spec.replicas',
      description: 'Sandboxes that should stand by.',
    },
    {
      name: 'Egress',
      type: 'string',
      jsonPath: conditionPath('EgressBlocked', 'reason'),
      description: 'Proven: their network was shown to be shut. Else why not.',
    },
    AGE,
    {
      name: 'Backend',
      type: 'string',
      jsonPath: '.spec.backend',
      description: 'Pod or VirtualMachineInstance.',
      wide: true,
    },
    {
      name: 'Image',
      type: 'string',
      jsonPath: '.spec.pod.image',
      description: 'Image of the pods.',
      wide: true,
    },
    {
      name: 'Disk',
      type: 'string',
      jsonPath: '.spec.virtualMachineInstance.containerDisk',
      description: 'Image of the machines.',
      wide: true,
    },
  ],
  selectableFields: ['.spec.backend'],
  scale: { spec: '.spec.replicas', status: '.status.replicas', selector: '.status.selector' },
};

export const DEFINITIONS: readonly Definition[] = [agentRun, agentSession, agentWorkflow, sandboxPool];

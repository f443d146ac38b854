import { z } from 'zod';
import { API_VERSION, type KubeObject, type ResourceKind } from './meta.ts';
import { cel, immutable, type Plain, text } from './schema.ts';
import {
  conditions,
  count,
  iid,
  money,
  projectPath,
  storedObject,
  timestamp,
  workflowRef,
} from './shapes.ts';

export const AgentSessionSpec = cel(
  z.object({
    workflowRef: workflowRef.describe('Workflow that the conversation belongs to.'),
    mergeRequest: z
      .object({
        project: projectPath.describe('Full path of the GitLab project, such as group/app.'),
        iid: iid.describe('Number of the merge request: 42 for !42.'),
      })
      .describe('Merge request that the conversation is about.'),
    discussionId: text(64)
      .optional()
      .describe(
        'GitLab discussion that is the conversation. Absent until its first note is posted; fixed afterwards.',
      ),
  }),
  ...immutable('spec', ['workflowRef', 'mergeRequest'], 'a session is one conversation; it cannot be moved'),
  {
    rule: '!has(oldSelf.discussionId) || (has(self.discussionId) && self.discussionId == oldSelf.discussionId)',
    message: 'spec.discussionId cannot be changed once it is set: a session is one conversation',
    fieldPath: '.discussionId',
    reason: 'FieldValueForbidden',
  },
);
export type AgentSessionSpec = Plain<z.infer<typeof AgentSessionSpec>>;

export const AgentSessionStatus = z.object({
  conditions: conditions
    .optional()
    .describe('Resumable is True while a reply can go on with the conversation; its reason says why not.'),
  observedGeneration: count.optional().describe('metadata.generation that the operator has acted on.'),
  mergeRequest: text(280).optional().describe('Merge request as people write it: group/app!42.'),
  archive: storedObject.optional().describe('Saved conversation; it names what belongs to it.'),
  transcript: storedObject.optional().describe('Readable record of the conversation.'),
  workspace: storedObject.optional().describe("Saved work directory of the last run's sandbox."),
  runs: count.optional().describe('Runs of this session that have ended.'),
  lastRun: z
    .object({
      name: text(253).describe('Name of the AgentRun; it may be deleted by now.'),
      time: timestamp.describe('When it ended, RFC 3339.'),
    })
    .optional()
    .describe('Run that ended last.'),
  costUSD: money
    .optional()
    .describe('Cost of all runs of the session in US dollars. Absent when a price is not known.'),
  expiresAt: timestamp
    .optional()
    .describe('When the archive and this object are deleted, RFC 3339. A new run moves it.'),
  lingering: z
    .object({
      pod: text(253).describe('Name of the pod or virtual machine.'),
      namespace: text(63).optional().describe('Namespace it runs in.'),
      until: timestamp.describe('When it is deleted, RFC 3339.'),
    })
    .optional()
    .describe('Sandbox that is kept for a quick reply.'),
});
export type AgentSessionStatus = Plain<z.infer<typeof AgentSessionStatus>>;

export type AgentSession = KubeObject & {
  readonly spec: AgentSessionSpec;
  readonly status?: AgentSessionStatus;
};

export const AGENT_SESSIONS: ResourceKind<AgentSession> = {
  apiVersion: API_VERSION,
  kind: 'AgentSession',
  plural: 'agentsessions',
  namespaced: true,
};

import { z } from 'zod';
import { duration } from './duration.ts';
import { API_VERSION, type KubeObject, type ResourceKind } from './meta.ts';
import { RUN_PHASES, RUN_REASONS, TERMINAL_PHASES } from './reasons.ts';
import { cel, immutable, listMap, type Plain, text } from './schema.ts';
import {
  conditions,
  count,
  gitlabId,
  iid,
  MESSAGE_MAX,
  money,
  projectPath,
  sandboxChoice,
  sessionRef,
  sha,
  storedObject,
  storeKey,
  timestamp,
  workflowRef,
} from './shapes.ts';

export const TRIGGER_KINDS = ['Manual', 'Pipeline', 'MergeRequest', 'Command', 'Reply'] as const;
export type TriggerKind = (typeof TRIGGER_KINDS)[number];

/** Longest `spec.message`, in characters. */
export const RUN_MESSAGE_MAX = 16_384;

const trigger = cel(
  z.object({
    kind: z
      .enum(TRIGGER_KINDS)
      .default('Manual')
      .describe('What caused the run. Manual (the default) for runs that people apply themselves.'),
    user: text(255).optional().describe('GitLab user name of whoever caused the run, without @.'),
    userId: gitlabId
      .optional()
      .describe(
        'GitLab id of that user. Runs that events cause need it: the user must have Developer access or more.',
      ),
    eventId: text(255)
      .optional()
      .describe('Id of the event that caused the run, such as the id of the failed pipeline.'),
    discussionId: text(64)
      .optional()
      .describe(
        'GitLab discussion that the answer goes to, such as that of a reply. Left out: the answer opens a new one.',
      ),
    noteId: gitlabId.optional().describe('GitLab note with the command or reply.'),
  }),
  {
    rule: "self.kind != 'Reply' || has(self.discussionId)",
    message: 'trigger.discussionId is required when trigger.kind is Reply: name the discussion to answer in',
    fieldPath: '.discussionId',
    reason: 'FieldValueRequired',
  },
  {
    rule: "self.kind != 'Command' || has(self.noteId)",
    message: 'trigger.noteId is required when trigger.kind is Command: name the note with the command',
    fieldPath: '.noteId',
    reason: 'FieldValueRequired',
  },
  {
    rule: "self.kind != 'Pipeline' || has(self.eventId)",
    message: 'trigger.eventId is required when trigger.kind is Pipeline: give the id of the pipeline',
    fieldPath: '.eventId',
    reason: 'FieldValueRequired',
  },
);

const limits = z.object({
  maxIterations: z.int().min(1).max(500).optional().describe('Most model calls of this run.'),
  contextTokens: z
    .int()
    .min(1000)
    .max(2_000_000)
    .optional()
    .describe('Input tokens of one model call after which the model has to answer without tools.'),
  timeout: duration
    .optional()
    .describe('Longest time from the start of the run to its answer, as a Go duration: 25m.'),
  budgetUSD: money.optional().describe('Most US dollars that the model calls of this run may cost: "2.50".'),
});

const specFields = z.object({
  workflowRef: workflowRef.describe('Workflow to run: its prompt, model, tools and tokens.'),
  mergeRequest: z
    .object({
      project: projectPath.describe(
        'Full path of the GitLab project, such as group/app. The workflow must list it.',
      ),
      iid: iid.describe('Number of the merge request as it stands in its address: 42 for !42.'),
      sha: sha
        .optional()
        .describe(
          'Commit to look at, 40 or 64 hex digits. Left out: the head when the run starts, see status.sha.',
        ),
    })
    .describe('Merge request to analyse.'),
  trigger: trigger.prefault({}).describe('Why the run exists. Left out: Manual.'),
  message: text(RUN_MESSAGE_MAX)
    .optional()
    .describe(
      'What the person asked, in their words; shown to the model after the event. At most 16384 characters.',
    ),
  sessionRef: sessionRef
    .optional()
    .describe(
      'Session of this workflow and merge request to go on with; message is then the next thing said. Left out: a new one is made.',
    ),
  model: z
    .object({
      name: text(255, 1).describe("Model name as the workflow's provider knows it."),
    })
    .optional()
    .describe("Another model for this run; provider and key stay the workflow's."),
  limits: limits.optional().describe("Limits of this run. Those left out are the workflow's."),
  sandbox: sandboxChoice.optional().describe('Where commands run. Left out: as the workflow says.'),
  publish: z
    .object({
      kind: z
        .enum(['Note', 'None'])
        .default('Note')
        .describe(
          'Note (the default) posts on the merge request. None posts nothing; the answer is in the transcript.',
        ),
    })
    .prefault({})
    .describe('What happens to the answer. None on the workflow wins over Note here.'),
  cancel: cel(
    z
      .boolean()
      .default(false)
      .describe(
        'Set to true to stop the run: its command is killed, the note says so, the sandbox goes. Cannot be taken back.',
      ),
    {
      rule: 'self || !oldSelf',
      message: 'spec.cancel cannot go back to false: create another AgentRun to start again',
      reason: 'FieldValueForbidden',
    },
  ),
  ttlSecondsAfterFinished: z
    .object({
      success: z
        .int()
        .min(0)
        .max(315_360_000)
        .optional()
        .describe('Seconds a successful or skipped run is kept: 1296000 is 15 days.'),
      failure: z
        .int()
        .min(0)
        .max(315_360_000)
        .optional()
        .describe('Seconds a failed or cancelled run is kept: 2592000 is 30 days.'),
    })
    .optional()
    .describe("When the finished run is deleted. Left out: the workflow's ttlAfterFinished."),
});

/** What may change later: `cancel` (once, to true) and how long the record is kept. */
const MUTABLE: readonly string[] = ['cancel', 'ttlSecondsAfterFinished'];

export const AgentRunSpec = cel(
  specFields,
  ...immutable(
    'spec',
    Object.keys(specFields.shape).filter((field) => !MUTABLE.includes(field)),
    'an AgentRun is the record of one analysis; create another one',
  ),
);
export type AgentRunSpec = Plain<z.infer<typeof AgentRunSpec>>;

const terminalPhases = `[${TERMINAL_PHASES.map((phase) => `'${phase}'`).join(', ')}]`;

const outcome = z.object({
  reason: z.enum(RUN_REASONS).describe('Reason that the Succeeded condition will have.'),
  message: text(MESSAGE_MAX).optional().describe('Sentence that the Succeeded condition will have.'),
  time: timestamp.describe('When the end was decided, RFC 3339.'),
  key: storeKey.optional().describe("Key of the answer in the operator's bucket or folder."),
  sha256: storedObject.shape.sha256.optional().describe('SHA-256 of the answer, lower case hex.'),
  bytes: count.optional().describe('Size of the answer in bytes.'),
});

export const AgentRunStatus = cel(
  z.object({
    phase: cel(
      z
        .enum(RUN_PHASES)
        .optional()
        .describe(
          'Where the run stands. Succeeded, Failed, Cancelled and Skipped are final; reason and message are in conditions.',
        ),
      {
        rule: `!(oldSelf in ${terminalPhases}) || self == oldSelf`,
        message: 'status.phase cannot leave a final phase: create another AgentRun to run again',
        reason: 'FieldValueForbidden',
      },
    ),
    conditions: conditions
      .optional()
      .describe(
        'Succeeded is the one to wait for; Admitted, SandboxReady, NotePosted and SessionSaved tell the steps that were done.',
      ),
    observedGeneration: count.optional().describe('metadata.generation that the operator has acted on.'),
    mergeRequest: text(280).optional().describe('Merge request as people write it: group/app!42.'),
    projectId: gitlabId.optional().describe('GitLab id of the project; it survives a rename of the project.'),
    sha: sha.optional().describe('Commit that the run looks at, fixed when the run was admitted.'),
    workflow: z
      .object({
        generation: count.describe('Generation of the AgentWorkflow.'),
        revision: text(253).describe('Name of the ControllerRevision that keeps its spec for the run.'),
      })
      .optional()
      .describe(
        'Configuration that the run was admitted with and goes on with to its end, whatever becomes of the AgentWorkflow.',
      ),
    model: text(255).optional().describe('Model that answers.'),
    iterations: count.optional().describe('Model calls so far.'),
    toolCalls: count.optional().describe('Tool calls so far.'),
    usage: z
      .object({
        input: count.describe('Tokens sent, those read from a cache included.'),
        output: count.describe('Tokens the model wrote.'),
        cacheRead: count.describe("Tokens read from the provider's cache."),
        cacheWrite: count.describe("Tokens written to the provider's cache."),
      })
      .optional()
      .describe('Tokens of all model calls so far, added up.'),
    costUSD: money
      .optional()
      .describe(
        'Cost of all model calls so far in US dollars. Absent when the price of the model is not known.',
      ),
    note: z
      .object({
        discussionId: text(64).describe('GitLab discussion that holds the note.'),
        noteId: gitlabId.describe('GitLab id of the note.'),
        url: text(1024)
          .regex(/^https?:\/\/[!-~]+$/, 'must be a web address')
          .describe('Address of the note in a browser.'),
      })
      .optional()
      .describe("The run's note on the merge request."),
    noteIntent: z
      .object({
        marker: text(512).optional().describe('Marker that the note will carry, to find it again.'),
        time: timestamp.describe('When the operator decided to post, RFC 3339.'),
      })
      .optional()
      .describe(
        'Written before the note is posted, so that a restarted operator looks for it instead of posting twice.',
      ),
    noteProgressTime: timestamp
      .optional()
      .describe('When the note was last edited to show the progress, RFC 3339.'),
    sandbox: z
      .object({
        kind: z
          .enum(['Pod', 'PodPool', 'Podman', 'VirtualMachineInstance', 'VirtualMachineInstancePool'])
          .describe('What the sandbox is.'),
        name: text(253).describe('Name of the pod or virtual machine.'),
        namespace: text(63).optional().describe('Namespace it runs in.'),
      })
      .optional()
      .describe('Sandbox that the run owns or owned last.'),
    session: text(253).optional().describe('Name of the AgentSession that this run belongs to.'),
    checkpoint: z
      .object({
        sequence: count.describe('Number of the checkpoint; the next one is one higher.'),
        key: storeKey.describe('Key of the saved conversation.'),
      })
      .optional()
      .describe(
        'Conversation as it was after the last full iteration; a restarted operator goes on from here.',
      ),
    approvals: listMap(
      z
        .array(
          z.object({
            id: text(12)
              .regex(/^[0-9a-f]{12}$/, 'must be 12 hex digits')
              .describe('Names the question: /hummingbird approve ID.'),
            tool: text(64)
              .regex(/^[A-Za-z0-9_-]+$/, 'must be the name of a tool')
              .describe('Tool that the model wants to call.'),
            arguments: text(500)
              .regex(/^[ -~]*$/, 'must be ASCII')
              .describe('Its arguments as JSON in ASCII, without secrets; cut when they are long.'),
            digest: storedObject.shape.sha256.describe(
              'SHA-256 of the call: its place in the run, tool and all arguments.',
            ),
            state: z
              .enum(['Waiting', 'Approved', 'Denied', 'Expired'])
              .describe('Expired: nobody has answered in time, so the call was refused.'),
            by: text(100)
              .regex(/^[ -~]*$/, 'must be ASCII')
              .optional()
              .describe('Who has answered.'),
            requestTime: timestamp.describe('When the model wanted to make the call, RFC 3339.'),
            decisionTime: timestamp.optional().describe('When the answer was taken, RFC 3339.'),
            told: z.boolean().optional().describe('Whether the note on the merge request says so.'),
          }),
        )
        .max(10),
      'id',
    )
      .optional()
      .describe(
        'Calls that wait, or waited, for approval. The annotation approval.hummingbird.dev/ID answers one: approve or deny.',
      ),
    transcript: storedObject.optional().describe('Readable record of the run.'),
    outcome: outcome
      .optional()
      .describe('How the run ends: decided, and on its way to the note and the session.'),
    promptDigest: text(80).optional().describe('SHA-256 of the system prompt that was used.'),
    holder: z
      .object({
        replica: text(253).describe('Operator replica that works on the run.'),
        epoch: cel(
          count.describe('Counts the changes of holder; only grows. Writes of an older epoch are refused.'),
          {
            rule: 'self >= oldSelf',
            message: 'status.holder.epoch cannot go down: another replica has taken the run over',
            reason: 'FieldValueForbidden',
          },
        ),
      })
      .optional()
      .describe('Who works on the run.'),
    startTime: timestamp
      .optional()
      .describe('When the operator took the run up, or when its turn in its session came, RFC 3339.'),
    completionTime: timestamp.optional().describe('When the run reached its final phase, RFC 3339.'),
    duration: text(32).optional().describe('Time between the two, for people: 4m07s.'),
  }),
  {
    rule: '!has(oldSelf.phase) || has(self.phase)',
    message: 'status.phase cannot be removed',
    fieldPath: '.phase',
    reason: 'FieldValueForbidden',
  },
  {
    rule: '!has(oldSelf.holder) || has(self.holder)',
    message: 'status.holder cannot be removed: its epoch has to be known to the next holder',
    fieldPath: '.holder',
    reason: 'FieldValueForbidden',
  },
);
export type AgentRunStatus = Plain<z.infer<typeof AgentRunStatus>>;

export type AgentRun = KubeObject & { readonly spec: AgentRunSpec; readonly status?: AgentRunStatus };

export const AGENT_RUNS: ResourceKind<AgentRun> = {
  apiVersion: API_VERSION,
  kind: 'AgentRun',
  plural: 'agentruns',
  namespaced: true,
};

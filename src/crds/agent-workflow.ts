import { z } from 'zod';
import { dataSources } from './data-sources.ts';
import { delivery } from './delivery.ts';
import { duration } from './duration.ts';
import { API_VERSION, type KubeObject, type ResourceKind } from './meta.ts';
import { model } from './model.ts';
import { cel, listMap, listSet, type Plain, text } from './schema.ts';
import {
  conditions,
  configMapKeyRef,
  count,
  dnsName,
  gitlabId,
  glob,
  money,
  projectPath,
  sandboxChoice,
  secretKeyRef,
} from './shapes.ts';

const prompt = cel(
  z.object({
    builtin: dnsName
      .optional()
      .describe("Name of a prompt in the operator's image, such as analyze-failures."),
    text: text(65_536, 1).optional().describe('The prompt itself, Markdown, at most 65536 characters.'),
    configMapKeyRef: configMapKeyRef
      .optional()
      .describe('ConfigMap key that holds the prompt. A change is used by the next run.'),
  }),
  {
    rule: '[has(self.builtin), has(self.text), has(self.configMapKeyRef)].exists_one(given, given)',
    message: 'prompt needs exactly one of builtin, text and configMapKeyRef',
  },
);

const globs = z.array(glob).max(32);

const rule = z.object({
  action: z.enum(['Allow', 'Deny']).describe('What happens when every condition of this rule matches.'),
  status: z
    .array(text(64, 1).regex(/^[a-z_*?]+$/, 'must be a GitLab pipeline status such as failed, or a glob'))
    .max(16)
    .optional()
    .describe(
      'Statuses of the pipeline, or globs of them: failed, success, canceled. Only for event Pipeline.',
    ),
  user: globs.optional().describe('Globs of the user name of whoever pushed: "*-bot".'),
  branch: globs.optional().describe('Globs of the target branch: main, "release-*".'),
  title: globs.optional().describe('Globs of the title of the merge request; /…/ is a regular expression.'),
});

const trigger = cel(
  z.object({
    event: z
      .enum(['Pipeline', 'MergeRequest'])
      .describe(
        'Pipeline: a pipeline of a merge request ended. MergeRequest: it was opened, reopened, or got a push.',
      ),
    rules: z
      .array(rule)
      .max(32)
      .optional()
      .describe(
        'The first rule that matches decides; when none matches the event is refused. Left out: failed pipelines, all merge requests.',
      ),
    ignoreUsers: globs
      .default([])
      .describe('Globs of user names that never start a run; asked before the rules.'),
    ignoreBranches: globs
      .default([])
      .describe('Globs of target branches that never start a run; asked before the rules.'),
  }),
  {
    rule: "self.event == 'Pipeline' || !has(self.rules) || self.rules.all(rule, !has(rule.status))",
    message: 'triggers.rules.status can be used with event Pipeline only: remove status, or change event',
    fieldPath: '.rules',
  },
);

const project = z.object({
  path: projectPath.describe('Full path of the GitLab project, such as group/app.'),
  actionTokenSecretRef: secretKeyRef('action', 'a project access token with scope api')
    .optional()
    .describe(
      "Token of the bot that posts this workflow's notes on this project. Required unless publish.kind is None.",
    ),
  tokens: z
    .object({
      gitlab: secretKeyRef('tool', 'a token with scope read_api')
        .optional()
        .describe(
          "Token of the model's GitLab tools on this project, instead of dataSources.gitlab.tokenSecretRef.",
        ),
    })
    .optional()
    .describe("Read tokens of the model's tools on this project."),
  limits: z
    .object({
      maxIterations: z.int().min(1).max(500).optional().describe('Most model calls of one run.'),
      maxRunsPerMergeRequest: z
        .int()
        .min(1)
        .max(1000)
        .optional()
        .describe('Most automatic runs on one merge request.'),
    })
    .optional()
    .describe("Limits on this project, instead of the workflow's."),
  internal: z
    .boolean()
    .optional()
    .describe('Whether notes on this project are internal, instead of publish.internal.'),
});

const limits = z.object({
  maxIterations: z
    .int()
    .min(1)
    .max(500)
    .default(30)
    .describe('Most model calls of one run, default 30; the main lever on cost.'),
  contextTokens: z
    .int()
    .min(1000)
    .max(2_000_000)
    .default(60_000)
    .describe(
      'Input tokens of one model call after which the model has to answer without tools, default 60000.',
    ),
  timeout: duration
    .default('25m')
    .describe('Longest time from the start of a run to its answer, as a Go duration, default 25m.'),
  budgetUSD: money
    .optional()
    .describe('Most US dollars that the model calls of one run may cost: "2.50". Left out: no such limit.'),
  maxRunsPerMergeRequest: z
    .int()
    .min(1)
    .max(1000)
    .default(5)
    .describe('Most automatic runs on one merge request, default 5. Commands and replies do not count.'),
});

export const AgentWorkflowSpec = cel(
  z.object({
    description: text(512)
      .optional()
      .describe('What the workflow does, in one line; shown by the help command.'),
    prompt: prompt
      .optional()
      .describe(
        'Instructions of the model, used word for word. Required unless delivery is set, which has prompts of its own and does not use this one.',
      ),
    triggers: listMap(z.array(trigger).max(2), 'event')
      .default([])
      .describe('Events that start a run by themselves. Commands and replies always can.'),
    commands: z
      .object({
        aliases: listSet(
          z
            .array(text(63, 1).regex(/^[a-z0-9][a-z0-9-]*$/, 'must be lower case letters, digits and -'))
            .max(8),
        )
          .default([])
          .describe("Other names for the command; the workflow's own name always works."),
      })
      .optional()
      .describe("How people start the workflow from a merge request; the prefix is the operator's setting."),
    concurrency: z
      .enum(['Supersede', 'Queue', 'Skip'])
      .default('Supersede')
      .describe(
        'When an event would start a run while one that an event started is under way on the merge request: stop the older one (Supersede, the default), wait (Queue), or do nothing (Skip). Runs by hand, command or reply are left alone.',
      ),
    model: model.describe('Model that answers, and how to reach it.'),
    limits: limits.prefault({}).describe('Where one run stops.'),
    sandbox: sandboxChoice.describe('Where the commands of the model run.'),
    publish: z
      .object({
        kind: z
          .enum(['Note', 'None'])
          .default('Note')
          .describe(
            'Note (the default) posts on the merge request. None posts nothing: a way to try a workflow out.',
          ),
        internal: z
          .boolean()
          .default(true)
          .describe('true (the default): notes are internal, only project members see them.'),
        progress: z
          .boolean()
          .default(false)
          .describe(
            'true: while the run goes on its note shows model calls, tools and cost, edited once a minute at most. Default false.',
          ),
      })
      .prefault({})
      .describe('Where the answer goes.'),
    dataSources: dataSources
      .prefault({})
      .describe('What the model can read. A source that is not named here does not exist for it.'),
    delivery: delivery
      .optional()
      .describe('Checked edits to version bumps. Left out: the workflow only explains.'),
    projects: listMap(z.array(project).min(1).max(200), 'path').describe(
      'Projects that the workflow serves; no others.',
    ),
    ttlAfterFinished: z
      .object({
        success: duration
          .default('360h')
          .describe(
            'How long a successful or skipped run is kept, as a Go duration, default 360h (15 days).',
          ),
        failure: duration
          .default('720h')
          .describe('How long a failed or cancelled run is kept, as a Go duration, default 720h (30 days).'),
      })
      .prefault({})
      .describe('How long finished AgentRuns are kept.'),
    suspend: z
      .boolean()
      .default(false)
      .describe('true: no new run starts; those under way go on. Default false.'),
  }),
  {
    rule: "self.publish.kind == 'None' || self.projects.all(project, has(project.actionTokenSecretRef))",
    message:
      'every entry of spec.projects needs actionTokenSecretRef to post notes: add it, or set spec.publish.kind to None',
    fieldPath: '.projects',
    reason: 'FieldValueRequired',
  },
  {
    rule: "!has(self.delivery) || self.publish.kind == 'Note'",
    message: 'spec.delivery needs spec.publish.kind Note, since its edits are explained in a note',
    fieldPath: '.delivery',
  },
  {
    rule: 'has(self.prompt) || has(self.delivery)',
    message: 'spec.prompt is required: name one, unless the workflow repairs chart bumps (spec.delivery)',
    fieldPath: '.prompt',
    reason: 'FieldValueRequired',
  },
  {
    rule: '!has(self.delivery) || has(self.sandbox.poolRef)',
    message: 'spec.delivery needs spec.sandbox.poolRef, since charts are rendered in a sandbox',
    fieldPath: '.sandbox',
  },
);
export type AgentWorkflowSpec = Plain<z.infer<typeof AgentWorkflowSpec>>;

export const AgentWorkflowStatus = z.object({
  conditions: conditions
    .optional()
    .describe(
      'Accepted: the spec makes sense, and new runs use it. ResolvedRefs: what it names exists and has the right tier. Ready: both, and GitLab knows the bots.',
    ),
  observedGeneration: count.optional().describe('metadata.generation that the operator has looked at.'),
  acceptedGeneration: count
    .optional()
    .describe('metadata.generation that new runs use: the last one that was accepted.'),
  projects: listMap(
    z
      .array(
        z.object({
          path: projectPath.describe('Full path of the project.'),
          botUserId: gitlabId.optional().describe('GitLab id of the bot that the action token belongs to.'),
          ready: z.boolean().describe('true when runs on the project can start.'),
          message: text(512).optional().describe('What is wrong, when ready is false.'),
        }),
      )
      .max(200),
    'path',
  )
    .optional()
    .describe('One entry for each project of the spec.'),
  activeRuns: count.optional().describe('Runs under way.'),
  trigger: text(64)
    .optional()
    .describe('Events that start a run, comma separated, or None; for kubectl get.'),
  projectsReady: text(16)
    .optional()
    .describe('Projects that are ready, of all of them: 2/3; for kubectl get.'),
});
export type AgentWorkflowStatus = Plain<z.infer<typeof AgentWorkflowStatus>>;

export type AgentWorkflow = KubeObject & {
  readonly spec: AgentWorkflowSpec;
  readonly status?: AgentWorkflowStatus;
};

export const AGENT_WORKFLOWS: ResourceKind<AgentWorkflow> = {
  apiVersion: API_VERSION,
  kind: 'AgentWorkflow',
  plural: 'agentworkflows',
  namespaced: true,
};

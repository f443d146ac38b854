import { z } from 'zod';
import { duration } from '../crds/duration.ts';
import { glob, httpUrl, money, projectPath } from '../crds/shapes.ts';
import { titleProblem } from '../crds/title-pattern.ts';

/** Tokens of this prefix are the operator's own: the model's tools and the notes never get one. */
const RESERVED_PREFIX = 'ORCHESTRATOR_';

/** Name of an environment variable, never its value: the file can be committed. */
const envName = z
  .string()
  .regex(
    /^[A-Z_][A-Z0-9_]*$/,
    'must be the NAME of an environment variable in capitals, not a value: put the value into the environment',
  )
  .refine((name) => !name.startsWith(RESERVED_PREFIX), {
    error: `begins with ${RESERVED_PREFIX}: such tokens are the operator's own and cannot be given to tools or notes; use another variable`,
  });

const iterations = z.int().min(1).max(500);
const contextTokens = z.int().min(1000).max(2_000_000);
const runsPerMergeRequest = z.int().min(1).max(1000);
const globs = z.array(glob).max(32);
const titles = z
  .array(
    glob.superRefine((pattern, context) => {
      const problem = titleProblem(pattern);
      if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
    }),
  )
  .max(32);

const modelMap = z.strictObject({
  name: z.string().min(1).describe('Name of the model as its provider knows it.'),
  provider: z
    .enum(['Gemini', 'GeminiVertex', 'AnthropicVertex', 'OpenAICompatible'])
    .optional()
    .describe('Left out: told by the name.'),
  base_url: httpUrl
    .optional()
    .describe(
      "Of an OpenAI-compatible endpoint up to and with /v1; of a gateway in front of Google's without a path.",
    ),
  api_key_env: envName.optional().describe('NAME of the variable with the API key.'),
  vertex_project: z.string().min(1).optional().describe('Default: GOOGLE_CLOUD_PROJECT.'),
  vertex_location: z.string().min(1).optional().describe('Default: GOOGLE_CLOUD_LOCATION.'),
});
const { $schema: _dialect, ...modelKeys } = z.toJSONSchema(modelMap, { io: 'input' });
/** A name alone tells the provider: `gemini…`, `claude…`. */
const model = z
  .preprocess((value) => (typeof value === 'string' ? { name: value } : value), modelMap)
  .meta({ anyOf: [{ type: 'string', minLength: 1 }, modelKeys] });

/** Kinds of sandboxes, as people name them. */
export const SANDBOX_BACKENDS = ['podman', 'k8s', 'k8spool', 'kubevirt', 'kubevirtpool', 'none'] as const;
const backend = z.enum(SANDBOX_BACKENDS);

const settings = z.strictObject({
  gitlab_url: httpUrl.default('https://gitlab.com').describe('Address of GitLab.'),
  sandbox: z
    .strictObject({
      image: z.string().min(1).optional().describe('Image of the sandbox, or container disk of a machine.'),
      namespace: z.string().min(1).optional().describe('Namespace of sandboxes in a cluster.'),
      pool: z.string().min(1).optional().describe('SandboxPool of k8spool and kubevirtpool.'),
      egress_probe: z
        .boolean()
        .default(true)
        .describe('Whether a k8s sandbox must be shown to reach no network.'),
      active_deadline_seconds: z
        .int()
        .min(60)
        .max(86_400)
        .default(1800)
        .describe('A sandbox ends by itself after so long.'),
      linger_seconds: z
        .int()
        .min(0)
        .default(300)
        .describe('How long the sandbox of a finished run is kept for a reply.'),
      max_lingering_pods: z.int().min(0).default(2).describe('Most sandboxes that are kept for a reply.'),
      vm_ssh_private_key: z
        .string()
        .min(1)
        .optional()
        .describe("File with the private key for a pool's machines; left out: from the pool's own Secret."),
      vm_user: z
        .string()
        .regex(/^[a-z_][a-z0-9_-]*$/, 'must be a Unix user name')
        .default('sandbox')
        .describe("Who commands run as in a machine of the run's own."),
      vm_cpu_cores: z.int().min(1).max(64).default(2).describe('Cores of such a machine.'),
      vm_memory: z
        .string()
        .regex(/^[0-9]+(\.[0-9]+)?(M|G|T|Mi|Gi|Ti)$/, 'must be a quantity such as 4Gi')
        .default('4Gi')
        .describe('Memory of such a machine, a Kubernetes quantity.'),
    })
    .prefault({})
    .describe('Where commands of the model run.'),
  model: model.prefault('gemini-3.1-pro-preview').describe('Model of workflows that name none.'),
  max_iterations: iterations.default(30).describe('Most model calls of one run.'),
  context_tokens: contextTokens
    .default(60_000)
    .describe('Input tokens of one call after which the model has to answer.'),
  timeout: duration.default('25m').describe('Longest time of one run, as 25m or 1h30m.'),
  budget_usd: money.optional().describe('Most US dollars of one run, as text: "2.50".'),
  max_runs_per_mr: runsPerMergeRequest
    .default(5)
    .describe('Most automatic runs of a workflow on one merge request.'),
  internal_notes: z.boolean().default(true).describe('Whether notes are internal.'),
  progress_notes: z
    .boolean()
    .default(false)
    .describe(
      "Whether notes show the progress of a run; of the operator's runs, hummingbird run shows it where it runs.",
    ),
  max_concurrent_agents: z.int().min(1).default(4).describe('Most runs at once.'),
  sqs_queue_url: z.string().default('').describe('Queue with GitLab webhooks; empty: none.'),
  sqs_fifo_queue_url: z.string().default('').describe('FIFO queue behind it; empty: one queue does.'),
  s3_session_bucket: z.string().default('').describe('Bucket of sessions; empty: none.'),
  trigger_prefix: z.string().min(1).default('/hummingbird').describe('Word that begins a command in a note.'),
  session_marker_prefix: z
    .string()
    .regex(/^[\w-]+$/, 'must be one word of letters, digits, _ and -')
    .default('hummingbird-session')
    .describe('First word of the comment that marks notes.'),
  auto_trigger: z.boolean().default(true).describe('false: no pipeline starts a run.'),
});

const rule = z.strictObject({
  action: z.enum(['allow', 'deny']).describe('What happens when every condition holds.'),
  status: globs.optional().describe('Globs of the status of the pipeline.'),
  user: globs.optional().describe('Globs of the user name of whoever pushed.'),
  branch: globs.optional().describe('Globs of the target branch.'),
  title: titles.optional().describe('Globs of the title, or regular expressions written /…/.'),
});

const sources = z.strictObject({
  gitlab: z
    .strictObject({
      token_env: envName.optional().describe('NAME of the variable with the read token.'),
      allowed_projects: z
        .array(projectPath)
        .max(100)
        .default([])
        .describe("Other projects that the tools may read, besides the merge request's own."),
    })
    .optional()
    .describe('Merge request, diff, pipelines, job logs.'),
  konflux: z
    .strictObject({
      cluster_url: httpUrl
        .regex(
          /\/ns\/[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
          'must end in /ns/ and the namespace, as https://api.example.org:6443/ns/team-tenant',
        )
        .describe(
          'API server of the cluster, and the namespace: https://api.example.org:6443/ns/team-tenant.',
        ),
      kubeconfig_env: envName.describe('NAME of the variable with the path of the kubeconfig.'),
      kubearchive_url: httpUrl.optional().describe('Kubearchive that keeps what the cluster has deleted.'),
    })
    .optional()
    .describe('PipelineRuns, TaskRuns and their logs.'),
  // An empty value in YAML is null.
  testing_farm: z
    .strictObject({
      artifacts_url: httpUrl
        .optional()
        .describe(
          'Where results and logs are. Left out: https://artifacts.osci.redhat.com/testing-farm; the public ranch has https://artifacts.dev.testing-farm.io.',
        ),
      api_url: httpUrl
        .optional()
        .describe('Where requests are looked up. Left out: https://api.testing-farm.io/v0.1.'),
    })
    .nullish()
    .describe('Results and logs of Testing Farm; {} is enough.'),
});

/** `gitlab` alone is known today; another name is more likely a slip than a wish. */
const tokens = z.strictObject({ gitlab: envName.optional().describe('Token for GitLab.') });

const project = z
  .strictObject({
    tokens: tokens.prefault({}).describe('NAMES of the variables with the read tokens of this project.'),
    action_tokens: tokens
      .prefault({})
      .describe('NAMES of the variables with the tokens that post notes on this project.'),
    max_runs_per_mr: runsPerMergeRequest.optional().describe("Instead of the settings'."),
    max_iterations: iterations.optional().describe("Instead of the workflow's."),
    internal_notes: z.boolean().optional().describe("Instead of the settings'."),
  })
  .nullable()
  .transform((value) => value ?? { tokens: {}, action_tokens: {} });

const workflow = z
  .strictObject({
    prompt: z
      .string()
      .min(1)
      .optional()
      .describe('Markdown file, relative to this one. Left out: the built-in prompt of this name.'),
    action: z.literal('post_gitlab_note').default('post_gitlab_note').describe('What becomes of the answer.'),
    description: z.string().max(512).optional().describe('What the workflow does, in one line.'),
    trigger: z
      .enum(['pipeline', 'merge_request', 'none'])
      .default('pipeline')
      .describe('Event that starts a run by itself; none: only commands and replies.'),
    trigger_rules: z
      .array(rule)
      .max(32)
      .optional()
      .describe('The first that matches decides; when none does, nothing runs. Left out: failed pipelines.'),
    ignore_users: globs.default([]).describe('Globs of users that never start a run.'),
    ignore_branches: globs.default([]).describe('Globs of target branches that never start a run.'),
    model: model.optional().describe("Instead of the settings'."),
    max_iterations: iterations.optional().describe("Instead of the settings'."),
    context_tokens: contextTokens.optional().describe("Instead of the settings'."),
    timeout: duration.optional().describe("Instead of the settings'."),
    budget_usd: money.optional().describe("Instead of the settings'."),
    sandbox: backend.optional().describe('Where commands run; wins over the command line.'),
    data_sources: sources.prefault({}).describe('What the model can read.'),
    projects: z
      .record(projectPath, project)
      .refine((projects) => Object.keys(projects).length > 0, { error: 'names no project; add one' })
      .describe('Projects that the workflow serves, by their full path.'),
  })
  .refine(
    ({ trigger, trigger_rules }) => trigger === 'pipeline' || !trigger_rules?.some((one) => one.status),
    {
      error: 'status can be used with trigger: pipeline only',
      path: ['trigger_rules'],
    },
  );

const workflowName = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, 'must be lower case letters, digits and -');

/** The configuration file, version of people: keys in snake case, secrets by the names of their variables. */
export const configFileSchema = z.strictObject({
  settings: settings.prefault({}).describe('What counts for all workflows.'),
  workflows: z
    .record(workflowName, workflow)
    .refine((workflows) => Object.keys(workflows).length > 0, { error: 'names no workflow; add one' })
    .describe('Workflows, by their names.'),
});

export type FileSettings = z.output<typeof settings>;
export type FileWorkflow = z.output<typeof workflow>;
export type FileModel = z.output<typeof modelMap>;
export type SandboxBackend = z.output<typeof backend>;

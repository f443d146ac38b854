import { z } from 'zod';
import { duration } from '../crds/duration.ts';
import { glob, httpUrl, money, projectPath } from '../crds/shapes.ts';

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
const runsPerMergeRequest = z.int().min(1).max(1000);
const globs = z.array(glob).max(32);

const modelMap = z.strictObject({
  name: z.string().min(1),
  provider: z.enum(['Gemini', 'GeminiVertex', 'AnthropicVertex', 'OpenAICompatible']).optional(),
  /** Of an OpenAI-compatible endpoint up to and with /v1; of a gateway in front of Google's without a path. */
  base_url: httpUrl.optional(),
  api_key_env: envName.optional(),
  vertex_project: z.string().min(1).optional(),
  vertex_location: z.string().min(1).optional(),
});
/** A name alone tells the provider: `gemini…`, `claude…`. */
const model = z.preprocess((value) => (typeof value === 'string' ? { name: value } : value), modelMap);

/** Kinds of sandboxes, as people name them. */
export const SANDBOX_BACKENDS = ['podman', 'k8s', 'k8spool', 'kubevirt', 'kubevirtpool', 'none'] as const;
const backend = z.enum(SANDBOX_BACKENDS);

const settings = z.strictObject({
  gitlab_url: httpUrl.default('https://gitlab.com'),
  sandbox: z
    .strictObject({
      image: z.string().min(1).optional(),
      namespace: z.string().min(1).optional(),
      pool: z.string().min(1).optional(),
      /** Whether a k8s sandbox must be shown to reach no network. */
      egress_probe: z.boolean().default(true),
      active_deadline_seconds: z.int().min(60).max(86_400).default(1800),
      linger_seconds: z.int().min(0).default(300),
      max_lingering_pods: z.int().min(0).default(2),
      /** File with the private key for a pool's machines; left out: from the pool's own Secret. */
      vm_ssh_private_key: z.string().min(1).optional(),
      /** Who commands run as in a machine of the run's own. */
      vm_user: z
        .string()
        .regex(/^[a-z_][a-z0-9_-]*$/, 'must be a Unix user name')
        .default('sandbox'),
      vm_cpu_cores: z.int().min(1).max(64).default(2),
      /** A Kubernetes quantity. */
      vm_memory: z
        .string()
        .regex(/^[0-9]+(\.[0-9]+)?(M|G|T|Mi|Gi|Ti)$/, 'must be a quantity such as 4Gi')
        .default('4Gi'),
    })
    .prefault({}),
  model: model.prefault('gemini-3.1-pro-preview'),
  max_iterations: iterations.default(30),
  context_tokens: z.int().min(1000).max(2_000_000).default(60_000),
  timeout: duration.default('25m'),
  budget_usd: money.optional(),
  max_runs_per_mr: runsPerMergeRequest.default(5),
  internal_notes: z.boolean().default(true),
  max_concurrent_agents: z.int().min(1).default(4),
  sqs_queue_url: z.string().default(''),
  sqs_fifo_queue_url: z.string().default(''),
  s3_session_bucket: z.string().default(''),
  trigger_prefix: z.string().min(1).default('/hummingbird'),
  session_marker_prefix: z
    .string()
    .regex(/^[\w-]+$/, 'must be one word of letters, digits, _ and -')
    .default('hummingbird-session'),
  auto_trigger: z.boolean().default(true),
});

const rule = z.strictObject({
  action: z.enum(['allow', 'deny']),
  status: globs.optional(),
  user: globs.optional(),
  branch: globs.optional(),
  title: globs.optional(),
});

const sources = z.strictObject({
  gitlab: z
    .strictObject({
      token_env: envName.optional(),
      /** Other projects that the tools may read, besides the merge request's own. */
      allowed_projects: z.array(projectPath).max(100).default([]),
    })
    .optional(),
  konflux: z
    .strictObject({
      cluster_url: httpUrl.regex(
        /\/ns\/[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
        'must end in /ns/ and the namespace',
      ),
      kubeconfig_env: envName,
      kubearchive_url: httpUrl.optional(),
    })
    .optional(),
  // An empty value in YAML is null.
  testing_farm: z.strictObject({}).nullish(),
});

/** `gitlab` alone is known today; another name is more likely a slip than a wish. */
const tokens = z.strictObject({ gitlab: envName.optional() });

const project = z
  .strictObject({
    tokens: tokens.prefault({}),
    action_tokens: tokens.prefault({}),
    max_runs_per_mr: runsPerMergeRequest.optional(),
    max_iterations: iterations.optional(),
    internal_notes: z.boolean().optional(),
  })
  .nullable()
  .transform((value) => value ?? { tokens: {}, action_tokens: {} });

const workflow = z
  .strictObject({
    prompt: z.string().min(1).optional(),
    action: z.literal('post_gitlab_note').default('post_gitlab_note'),
    description: z.string().max(512).optional(),
    trigger: z.enum(['pipeline', 'merge_request', 'none']).default('pipeline'),
    trigger_rules: z.array(rule).max(32).optional(),
    ignore_users: globs.default([]),
    ignore_branches: globs.default([]),
    model: model.optional(),
    max_iterations: iterations.optional(),
    context_tokens: z.int().min(1000).max(2_000_000).optional(),
    timeout: duration.optional(),
    budget_usd: money.optional(),
    sandbox: backend.optional(),
    data_sources: sources.prefault({}),
    projects: z
      .record(projectPath, project)
      .refine((projects) => Object.keys(projects).length > 0, { error: 'names no project' }),
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
  settings: settings.prefault({}),
  workflows: z
    .record(workflowName, workflow)
    .refine((workflows) => Object.keys(workflows).length > 0, { error: 'names no workflow' }),
});

export type FileSettings = z.output<typeof settings>;
export type FileWorkflow = z.output<typeof workflow>;
export type FileModel = z.output<typeof modelMap>;
export type SandboxBackend = z.output<typeof backend>;

import { type AgentWorkflow, AgentWorkflowSpec } from '../crds/agent-workflow.ts';
import { API_VERSION } from '../crds/meta.ts';
import { type Environment, type EnvNeed, envSecretRef } from './environment.ts';
import type { FileModel, FileSettings, FileWorkflow, SandboxBackend } from './file-schema.ts';
import type { SecretKeyRef, TokenTier } from './secrets.ts';

/** A workflow of the file in the operator's own shape, and what that shape has no place for. */
export interface ConfiguredWorkflow {
  readonly name: string;
  readonly workflow: AgentWorkflow;
  /** The backend that the workflow asks for; it wins over the command line. */
  readonly backend: SandboxBackend | undefined;
  /** Variables that runs of this workflow use. */
  readonly needs: readonly EnvNeed[];
}

/** Namespace of what comes from the file: nothing of it is in a cluster. */
export const FILE_NAMESPACE = 'file';

/**
 * The prompt's text and the environment are given: which provider a bare `gemini…` means depends on what is set.
 * Throws ZodError for what the operator's shape refuses.
 */
export function configuredWorkflow(
  name: string,
  { file, settings, prompt, env, secretRef = envSecretRef }: WorkflowParts,
): ConfiguredWorkflow {
  const needs: EnvNeed[] = [];
  const at = `workflows.${name}`;
  const secret = (tier: TokenTier, variable: string | undefined, where: string) => {
    if (variable === undefined) return undefined;
    const need = { name: variable, tier, where };
    needs.push(need);
    return secretRef(need);
  };
  const modelAt = file.model === undefined ? 'settings.model' : `${at}.model`;
  const { gitlab, konflux, testing_farm: testingFarm } = file.data_sources;

  const spec = AgentWorkflowSpec.parse(
    withoutUndefined({
      description: file.description,
      prompt,
      triggers: triggersOf(file, settings),
      model: modelOf(file.model ?? settings.model, env, (variable) =>
        secret('model', variable, `${modelAt}.api_key_env`),
      ),
      limits: {
        maxIterations: file.max_iterations ?? settings.max_iterations,
        contextTokens: file.context_tokens ?? settings.context_tokens,
        timeout: file.timeout ?? settings.timeout,
        budgetUSD: file.budget_usd ?? settings.budget_usd,
        maxRunsPerMergeRequest: settings.max_runs_per_mr,
      },
      sandbox: sandboxOf(file.sandbox, settings),
      publish: { kind: 'Note', internal: settings.internal_notes, progress: settings.progress_notes },
      dataSources: {
        gitlab: gitlab && {
          allowedProjects: gitlab.allowed_projects,
          tokenSecretRef: secret('tool', gitlab.token_env, `${at}.data_sources.gitlab.token_env`),
        },
        konflux: konflux && {
          clusterURL: konflux.cluster_url,
          kubeconfigSecretRef: secret(
            'tool',
            konflux.kubeconfig_env,
            `${at}.data_sources.konflux.kubeconfig_env`,
          ),
          kubearchiveURL: konflux.kubearchive_url,
        },
        testingFarm:
          testingFarm === undefined
            ? undefined
            : { artifactsURL: testingFarm?.artifacts_url, apiURL: testingFarm?.api_url },
      },
      projects: Object.entries(file.projects).map(([path, project]) => {
        const where = `${at}.projects.${path}`;
        return {
          path,
          actionTokenSecretRef: secret(
            'action',
            project.action_tokens.gitlab,
            `${where}.action_tokens.gitlab`,
          ),
          tokens: { gitlab: secret('tool', project.tokens.gitlab, `${where}.tokens.gitlab`) },
          limits: {
            maxIterations: project.max_iterations,
            maxRunsPerMergeRequest: project.max_runs_per_mr,
          },
          internal: project.internal_notes,
        };
      }),
    }),
  );
  return {
    name,
    // What the schema gives holds no undefined fields: withoutUndefined took them out, and defaults are values.
    workflow: {
      apiVersion: API_VERSION,
      kind: 'AgentWorkflow',
      metadata: { name, namespace: FILE_NAMESPACE },
      spec: spec as AgentWorkflow['spec'],
    },
    backend: file.sandbox,
    needs,
  };
}

export interface WorkflowParts {
  readonly file: FileWorkflow;
  readonly settings: FileSettings;
  readonly prompt: AgentWorkflow['spec']['prompt'];
  readonly env: Environment;
  /** What stands for a variable; default: the environment, as if it were Secrets. */
  readonly secretRef?: ((need: EnvNeed) => SecretKeyRef) | undefined;
}

function triggersOf(file: FileWorkflow, settings: FileSettings) {
  if (file.trigger === 'none' || (file.trigger === 'pipeline' && !settings.auto_trigger)) return [];
  return [
    {
      event: file.trigger === 'pipeline' ? 'Pipeline' : 'MergeRequest',
      rules: file.trigger_rules?.map(({ action, ...conditions }) => ({
        action: action === 'allow' ? 'Allow' : 'Deny',
        ...conditions,
      })),
      ignoreUsers: file.ignore_users,
      ignoreBranches: file.ignore_branches,
    },
  ];
}

/** A bare `gemini…` is asked with the API key where there is one, else on Vertex AI, as `claude…` always is. */
function modelOf(
  model: FileModel,
  env: Environment,
  secret: (variable: string | undefined) => object | undefined,
) {
  const keyVariable = model.api_key_env ?? 'GOOGLE_API_KEY';
  const provider =
    model.provider ??
    (model.base_url !== undefined
      ? 'OpenAICompatible'
      : model.name.startsWith('claude')
        ? 'AnthropicVertex'
        : !model.name.startsWith('gemini')
          ? 'OpenAICompatible'
          : env[keyVariable] || !env['GOOGLE_CLOUD_PROJECT']
            ? 'Gemini'
            : 'GeminiVertex');
  const { name, base_url: baseURL } = model;
  if (provider === 'Gemini') return { name, provider, baseURL, apiKeySecretRef: secret(keyVariable) };
  if (provider === 'OpenAICompatible')
    return { name, provider, baseURL, apiKeySecretRef: secret(model.api_key_env) };
  const project = model.vertex_project ?? env['GOOGLE_CLOUD_PROJECT'];
  const location = model.vertex_location ?? env['GOOGLE_CLOUD_LOCATION'];
  return { name, provider, baseURL, vertex: { project, location } };
}

/** Backends that the operator's shape has no word for are `none` there: the backend is beside it. */
function sandboxOf(backend: SandboxBackend | undefined, { sandbox }: FileSettings) {
  const { pool, namespace } = sandbox;
  return backend === 'k8spool' && pool !== undefined
    ? { poolRef: { name: pool, namespace } }
    : { none: true };
}

/** Deeply, and in arrays: an absent field is absent, as in the JSON that a cluster would give. */
function withoutUndefined(value: object): unknown {
  return JSON.parse(JSON.stringify(value));
}

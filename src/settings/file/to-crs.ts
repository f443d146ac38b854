import type { AgentWorkflow } from '../../crds/agent-workflow.ts';
import { API_VERSION, type KubeObject } from '../../crds/meta.ts';
import type { EnvNeed } from '../environment.ts';
import type { Config } from '../file.ts';
import type { ConfiguredWorkflow } from '../file-workflow.ts';
import { SettingsError } from '../operator.ts';

/** Of the file's settings, where they do not say it. */
const POOL = 'analysis';
const IMAGE = 'registry.example.org/agent-sandbox:1';

export interface ClusterNamespaces {
  readonly namespace: string;
  /** Of pools, where the file does not say it. */
  readonly sandboxNamespace: string;
}

export interface ClusterConfig {
  readonly workflows: readonly AgentWorkflow[];
  /** The workflows and the pool that they name. */
  readonly objects: readonly KubeObject[];
  /** Variables that become Secrets. */
  readonly needs: readonly EnvNeed[];
  /** Flags of the operator that say the rest of the settings. */
  readonly flags: readonly string[];
}

/**
 * The file as the operator takes it: AgentWorkflows, and a skeleton of the SandboxPool that they name. The
 * configuration must be loaded with `clusterSecretRef`. Throws one SettingsError for all that the operator could not do.
 */
export function clusterConfig(config: Config, namespaces: ClusterNamespaces): ClusterConfig {
  const problems = config.workflows.flatMap(operatorProblems);
  if (problems.length > 0)
    throw new SettingsError(
      `the operator cannot work with ${config.path}:\n${problems.map((problem) => `  ${problem}`).join('\n')}`,
    );
  const workflows = config.workflows.map((workflow) => inCluster(workflow, config, namespaces));
  const usesPool = workflows.some(({ spec }) => spec.sandbox.poolRef !== undefined);
  return {
    workflows,
    objects: [...(usesPool ? [poolOf(config, namespaces)] : []), ...workflows],
    needs: config.needs,
    flags: flagsOf(config),
  };
}

function operatorProblems({ name, workflow: { spec } }: ConfiguredWorkflow): readonly string[] {
  const at = `workflows.${name}`;
  const { model, projects } = spec;
  const isPath = model.baseURL !== undefined && !/^https?:\/\/[^/]+$/.test(model.baseURL);
  return [
    ...projects
      .filter(({ actionTokenSecretRef }) => actionTokenSecretRef === undefined)
      .map(({ path }) => `${at}.projects.${path}: add action_tokens.gitlab, which notes are posted with`),
    ...(isPath && model.provider !== 'OpenAICompatible'
      ? [`${at}: make the model's base_url scheme and host only, as https://gateway.example.org`]
      : []),
  ];
}

function inCluster({ name, workflow, backend }: ConfiguredWorkflow, config: Config, to: ClusterNamespaces) {
  const pool = { name: poolName(config), namespace: poolNamespace(config, to) };
  const sandbox: AgentWorkflow['spec']['sandbox'] = backend === 'none' ? { none: true } : { poolRef: pool };
  const { apiVersion, kind, spec } = workflow;
  return { apiVersion, kind, metadata: { name, namespace: to.namespace }, spec: { ...spec, sandbox } };
}

const poolName = ({ settings }: Config): string => settings.sandbox.pool ?? POOL;
const poolNamespace = ({ settings }: Config, to: ClusterNamespaces): string =>
  settings.sandbox.namespace ?? to.sandboxNamespace;

/** One pool for all: the file has one image. Machines where a workflow wants some. */
function poolOf(config: Config, to: ClusterNamespaces): KubeObject & { readonly spec: object } {
  const { sandbox } = config.settings;
  const image = sandbox.image ?? IMAGE;
  const isMachine = config.workflows.some(({ backend }) => backend?.startsWith('kubevirt'));
  return {
    apiVersion: API_VERSION,
    kind: 'SandboxPool',
    metadata: { name: poolName(config), namespace: poolNamespace(config, to) },
    spec: {
      replicas: 2,
      ...(isMachine
        ? {
            backend: 'VirtualMachineInstance',
            virtualMachineInstance: {
              containerDisk: image,
              cpuCores: sandbox.vm_cpu_cores,
              memory: sandbox.vm_memory,
              ssh: { user: sandbox.vm_user, privateKeySecretRef: { name: 'sandbox-ssh', key: 'privateKey' } },
            },
          }
        : { backend: 'Pod', pod: { image } }),
      maxActive: seconds(sandbox.active_deadline_seconds),
      linger: { duration: seconds(sandbox.linger_seconds), max: sandbox.max_lingering_pods },
      egressProbe: { enabled: sandbox.egress_probe },
    },
  };
}

const seconds = (count: number): string => `${count}s`;

function flagsOf({ settings }: Config): readonly string[] {
  const given = [
    ['--gitlab-url', settings.gitlab_url],
    ['--queue-url', settings.sqs_queue_url],
    ['--fifo-queue-url', settings.sqs_fifo_queue_url],
    ['--bucket', settings.s3_session_bucket],
    ['--command-prefix', settings.trigger_prefix],
    ['--marker-prefix', settings.session_marker_prefix],
    ['--max-concurrent-runs', String(settings.max_concurrent_agents)],
  ];
  return given.flatMap(([flag, value]) => (value === '' ? [] : [`${flag} ${value}`]));
}

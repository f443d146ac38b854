import { API_VERSION, LABELS } from '../../src/crds/meta.ts';
import type { Namespaces } from './install.ts';

/** The objects that a user writes, with everything that tests and the demo do not care about filled in. */

export function tokenSecret(
  namespace: string,
  name: string,
  tier: 'action' | 'tool' | 'model',
  value: string,
): object {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace, labels: { [LABELS.tokenTier]: tier } },
    stringData: { token: value },
  };
}

export function pool(
  namespaces: Namespaces,
  options: {
    readonly name?: string;
    readonly image: string;
    readonly replicas?: number;
    readonly spec?: object | undefined;
    /** Off when left out: a proof takes 5 s, and most tests are about something else. */
    readonly egressProbe?: boolean;
  },
): object {
  const { name = 'analysis', image, replicas = 2, egressProbe = false } = options;
  return {
    apiVersion: API_VERSION,
    kind: 'SandboxPool',
    metadata: { name, namespace: namespaces.sandboxes },
    spec: {
      replicas,
      backend: 'Pod',
      pod: {
        image,
        resources: { requests: { cpu: '10m', memory: '32Mi' }, limits: { cpu: '1', memory: '512Mi' } },
        workspace: { sizeLimit: '512Mi' },
      },
      egressProbe: { enabled: egressProbe },
      ...options.spec,
    },
  };
}

export interface WorkflowOptions {
  readonly name?: string;
  readonly project: string;
  readonly model: { readonly name: string; readonly baseURL: string };
  readonly poolName?: string;
  readonly spec?: object;
}

/** Names the Secrets gitlab-action, gitlab-read and model-key. */
export function workflow(namespaces: Namespaces, options: WorkflowOptions): object {
  const { name = 'analyze-failures', project, model, poolName = 'analysis' } = options;
  return {
    apiVersion: API_VERSION,
    kind: 'AgentWorkflow',
    metadata: { name, namespace: namespaces.agents },
    spec: {
      description: 'Explain why the pipeline of this merge request failed',
      prompt: { builtin: 'analyze-failures' },
      triggers: [{ event: 'Pipeline', rules: [{ action: 'Allow', status: ['failed'] }] }],
      model: {
        name: model.name,
        provider: 'OpenAICompatible',
        baseURL: model.baseURL,
        apiKeySecretRef: { name: 'model-key', key: 'token' },
      },
      sandbox: { poolRef: { name: poolName, namespace: namespaces.sandboxes } },
      dataSources: { gitlab: { tokenSecretRef: { name: 'gitlab-read', key: 'token' } } },
      projects: [{ path: project, actionTokenSecretRef: { name: 'gitlab-action', key: 'token' } }],
      ...options.spec,
    },
  };
}

export function run(
  namespaces: Namespaces,
  options: {
    readonly name: string;
    readonly workflow?: string;
    readonly project: string;
    readonly iid: number;
    readonly spec?: object;
  },
): object {
  return {
    apiVersion: API_VERSION,
    kind: 'AgentRun',
    metadata: { name: options.name, namespace: namespaces.agents },
    spec: {
      workflowRef: { name: options.workflow ?? 'analyze-failures' },
      mergeRequest: { project: options.project, iid: options.iid },
      ...options.spec,
    },
  };
}

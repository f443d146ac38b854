import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import { type ReadSecret, readSecretKey, type SecretKeyRef, type TokenTier } from './secrets.ts';
import { type ActionToken, actionToken, type ToolToken, toolToken } from './tokens.ts';

/** A reference that cannot be resolved is a value: who asked says it where people look. */
export type Resolved<T> =
  | { readonly kind: 'Ok'; readonly value: T }
  | { readonly kind: 'Invalid'; readonly reason: string; readonly message: string };

export interface ReferenceSources {
  readonly readSecret: ReadSecret;
  /** One key of a ConfigMap; undefined when either is missing. */
  readConfigMapKey(namespace: string, name: string, key: string): Promise<string | undefined>;
  /** Rejects for a name that does not exist. */
  readBuiltinPrompt(name: string): Promise<string>;
  /** Told every secret value that was read, so that it can be kept out of everything that leaves the process. */
  onSecret(value: string): void;
}

/** Turns what an AgentWorkflow names into values, each of the tier that its field stands for. */
export interface References {
  actionToken(workflow: AgentWorkflow, project: string): Promise<Resolved<ActionToken>>;
  /** The project's own read token, else the workflow's. */
  gitlabToolToken(workflow: AgentWorkflow, project: string): Promise<Resolved<ToolToken>>;
  /** The kubeconfig itself, which is as secret as the token in it. Undefined value: the workflow declares no Konflux. */
  konfluxKubeconfig(workflow: AgentWorkflow): Promise<Resolved<ToolToken | undefined>>;
  /** Of `delivery.liveReads`. Undefined value: nobody is to look into a cluster. */
  liveKubeconfig(workflow: AgentWorkflow): Promise<Resolved<ToolToken | undefined>>;
  /** Undefined value: the server wants none. */
  mcpToken(workflow: AgentWorkflow, server: string): Promise<Resolved<ToolToken | undefined>>;
  /** Undefined value: the workflow names no key, and its endpoint wants none. */
  modelKey(workflow: AgentWorkflow): Promise<Resolved<string | undefined>>;
  /** A service account's key file; undefined value: the workflow names none, and the process's own account counts. */
  vertexKeyFile(workflow: AgentWorkflow): Promise<Resolved<string | undefined>>;
  prompt(workflow: AgentWorkflow): Promise<Resolved<string>>;
}

export function createReferences(sources: ReferenceSources): References {
  const secret = async (
    workflow: AgentWorkflow,
    ref: SecretKeyRef,
    tier: TokenTier,
    field: string,
  ): Promise<Resolved<string>> => {
    const found = await readSecretKey(sources.readSecret, namespaceOf(workflow), ref, tier);
    if (found.kind === 'Invalid') return { ...found, message: `${field}: ${found.message}` };
    sources.onSecret(found.value);
    return found;
  };

  return {
    async actionToken(workflow, project) {
      const field = `spec.projects[${project}].actionTokenSecretRef`;
      const ref = projectOf(workflow, project)?.actionTokenSecretRef;
      if (ref === undefined)
        return missing(field, 'name the Secret with the token that posts notes on this project');
      return mapped(await secret(workflow, ref, 'action', field), actionToken);
    },

    async gitlabToolToken(workflow, project) {
      const own = projectOf(workflow, project)?.tokens?.gitlab;
      const ref = own ?? workflow.spec.dataSources.gitlab?.tokenSecretRef;
      const field =
        own === undefined
          ? 'spec.dataSources.gitlab.tokenSecretRef'
          : `spec.projects[${project}].tokens.gitlab`;
      if (ref === undefined)
        return missing(field, "name the Secret with the token of the model's GitLab tools");
      return mapped(await secret(workflow, ref, 'tool', field), toolToken);
    },

    async konfluxKubeconfig(workflow) {
      const ref = workflow.spec.dataSources.konflux?.kubeconfigSecretRef;
      if (ref === undefined) return { kind: 'Ok', value: undefined };
      const field = 'spec.dataSources.konflux.kubeconfigSecretRef';
      return mapped(await secret(workflow, ref, 'tool', field), toolToken);
    },

    async liveKubeconfig(workflow) {
      const { enabled = false, kubeconfigSecretRef: ref } = workflow.spec.delivery?.liveReads ?? {};
      if (!enabled || ref === undefined) return { kind: 'Ok', value: undefined };
      const field = 'spec.delivery.liveReads.kubeconfigSecretRef';
      return mapped(await secret(workflow, ref, 'tool', field), toolToken);
    },

    async mcpToken(workflow, server) {
      const declared = workflow.spec.dataSources.mcp?.find(({ name }) => name === server);
      if (declared?.tokenSecretRef === undefined) return { kind: 'Ok', value: undefined };
      const field = `spec.dataSources.mcp[${server}].tokenSecretRef`;
      return mapped(await secret(workflow, declared.tokenSecretRef, 'tool', field), toolToken);
    },

    async modelKey(workflow) {
      const ref = workflow.spec.model.apiKeySecretRef;
      if (ref === undefined) return { kind: 'Ok', value: undefined };
      return secret(workflow, ref, 'model', 'spec.model.apiKeySecretRef');
    },

    async vertexKeyFile(workflow) {
      const ref = workflow.spec.model.vertex?.credentialsSecretRef;
      if (ref === undefined) return { kind: 'Ok', value: undefined };
      return secret(workflow, ref, 'model', 'spec.model.vertex.credentialsSecretRef');
    },

    async prompt(workflow) {
      const { text, builtin, configMapKeyRef } = workflow.spec.prompt ?? { text: '' };
      if (text !== undefined) return { kind: 'Ok', value: text };
      if (configMapKeyRef !== undefined) {
        const { name, key } = configMapKeyRef;
        const value = await sources.readConfigMapKey(namespaceOf(workflow), name, key);
        if (value !== undefined) return { kind: 'Ok', value };
        return missing(
          'spec.prompt.configMapKeyRef',
          `ConfigMap ${namespaceOf(workflow)}/${name} with key ${key} does not exist; create it`,
        );
      }
      try {
        return { kind: 'Ok', value: await sources.readBuiltinPrompt(builtin ?? '') };
      } catch (error) {
        return missing('spec.prompt.builtin', error instanceof Error ? error.message : String(error));
      }
    },
  };
}

const namespaceOf = (workflow: AgentWorkflow): string => workflow.metadata.namespace ?? '';

const projectOf = (workflow: AgentWorkflow, path: string) =>
  workflow.spec.projects.find((project) => project.path === path);

const missing = (field: string, what: string): Extract<Resolved<never>, { kind: 'Invalid' }> => ({
  kind: 'Invalid',
  reason: 'NotFound',
  message: `${field}: ${what}`,
});

const mapped = <From, To>(found: Resolved<From>, map: (value: From) => To): Resolved<To> =>
  found.kind === 'Ok' ? { kind: 'Ok', value: map(found.value) } : found;

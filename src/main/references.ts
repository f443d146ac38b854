import { chooseModel, type ModelChoice } from '../agent/models/choose.ts';
import type { Model } from '../agent/models/port.ts';
import type { GoogleCredentials } from '../agent/models/vertex/credentials.ts';
import { builtinPrompts } from '../agent/prompt-files.ts';
import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import type { HttpClient } from '../http/client.ts';
import { type Clock, systemClock } from '../kube/clock.ts';
import { CONFIG_MAP, SECRET } from '../kube/kinds.ts';
import type { KubeClient } from '../kube/port.ts';
import { createReferences, type References, type Resolved } from '../settings/references.ts';
import type { ReadSecret } from '../settings/secrets.ts';
import { sharedReads } from '../settings/shared-reads.ts';

/**
 * References read from the cluster at the time of asking: a rotated Secret counts from the next use on. With `shareMs`
 * those that ask for a Secret within that time share one read.
 */
export function joinReferences(
  kube: KubeClient,
  onSecret: (value: string) => void,
  { shareMs = 0, clock = systemClock }: { readonly shareMs?: number; readonly clock?: Clock } = {},
): References {
  const readSecret: ReadSecret = async (namespace, name) => {
    const found = await kube.get(SECRET, { namespace, name });
    return found && { labels: found.metadata.labels ?? {}, data: found.data ?? {} };
  };
  return createReferences({
    readSecret: shareMs === 0 ? readSecret : sharedReads(readSecret, shareMs, () => clock.monotonicMs()),
    readConfigMapKey: async (namespace, name, key) =>
      (await kube.get(CONFIG_MAP, { namespace, name }))?.data?.[key],
    readBuiltinPrompt: builtinPrompts(),
    onSecret,
  });
}

export interface ModelMeans {
  readonly references: References;
  readonly http: HttpClient;
  readonly google: GoogleCredentials;
}

/** The workflow's model, or the one that a run asks for at the same provider. */
export async function openModel(
  { references, http, google }: ModelMeans,
  workflow: AgentWorkflow,
  override: string | undefined,
): Promise<Resolved<Model>> {
  const { name, provider, baseURL, maxOutputTokens } = workflow.spec.model;
  const key = await references.modelKey(workflow);
  if (key.kind === 'Invalid') return key;
  try {
    const vertex = provider.endsWith('Vertex') ? await openVertex(references, google, workflow) : undefined;
    if (vertex?.kind === 'Invalid') return vertex;
    const value = chooseModel(
      {
        name: override ?? name,
        provider,
        ...(baseURL === undefined ? {} : { baseUrl: baseURL }),
        ...(key.value === undefined ? {} : { apiKey: key.value }),
        ...(vertex === undefined ? {} : { vertex: vertex.value }),
        ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
      },
      { http },
    );
    return { kind: 'Ok', value };
  } catch (error) {
    const message = `spec.model: ${error instanceof Error ? error.message : String(error)}`;
    return { kind: 'Invalid', reason: 'InvalidModel', message };
  }
}

/** The project that the workflow names, else the account's own. */
async function openVertex(
  references: References,
  google: GoogleCredentials,
  workflow: AgentWorkflow,
): Promise<Resolved<NonNullable<ModelChoice['vertex']>>> {
  const keyFile = await references.vertexKeyFile(workflow);
  if (keyFile.kind === 'Invalid') return keyFile;
  const access = google.accessFor(keyFile.value);
  const { project = await access.project(), location = 'global' } = workflow.spec.model.vertex ?? {};
  return { kind: 'Ok', value: { access, location, ...(project === undefined ? {} : { project }) } };
}

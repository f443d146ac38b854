import type { ProjectCheck, ReferenceCheck } from '../controllers/workflow/decide.ts';
import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import { SANDBOX_POOLS } from '../crds/sandbox-pool.ts';
import type { KubeClient } from '../kube/port.ts';
import type { NotesFactory } from '../notes/port.ts';
import type { References, Resolved } from '../settings/references.ts';
import { liveFacts } from './delivery.ts';
import { declaredServers } from './mcp.ts';
import { konfluxAccess, readToken, type SourceCredentials } from './sources.ts';

/** Everything that a workflow names, looked up as a run would. */
export async function checkReferences(
  credentials: SourceCredentials,
  kube: KubeClient,
  workflow: AgentWorkflow,
): Promise<readonly ReferenceCheck[]> {
  const { references } = credentials;
  const { projects } = workflow.spec;
  return Promise.all([
    check('spec.prompt', references.prompt(workflow)),
    check('spec.model.apiKeySecretRef', references.modelKey(workflow)),
    check('spec.model.vertex.credentialsSecretRef', references.vertexKeyFile(workflow)),
    ...projects.map(({ path }) =>
      check(
        'spec.dataSources.gitlab',
        // A bump cannot be looked at without it; other workflows may have no GitLab tools.
        workflow.spec.delivery === undefined
          ? readToken(references, workflow, path)
          : references.gitlabToolToken(workflow, path),
      ),
    ),
    check('spec.dataSources.konflux', konfluxAccess(credentials, workflow)),
    check('spec.delivery.liveReads', liveFacts({ ...credentials, warn: () => undefined }, workflow)),
    check('spec.dataSources.mcp', declaredServers({ programs: [], ...credentials }, workflow)),
    checkPool(kube, workflow),
  ]);
}

async function check(field: string, resolving: Promise<Resolved<unknown>>): Promise<ReferenceCheck> {
  const resolved = await resolving;
  return resolved.kind === 'Ok'
    ? { field, ok: true }
    : { field, ok: false, reason: resolved.reason, message: resolved.message };
}

async function checkPool(kube: KubeClient, { metadata, spec }: AgentWorkflow): Promise<ReferenceCheck> {
  const field = 'spec.sandbox.poolRef';
  const { poolRef } = spec.sandbox;
  if (poolRef === undefined) return { field, ok: true };
  const namespace = poolRef.namespace ?? metadata.namespace ?? '';
  const pool = await kube.get(SANDBOX_POOLS, { namespace, name: poolRef.name });
  if (pool !== undefined) return { field, ok: true };
  return {
    field,
    ok: false,
    reason: 'NotFound',
    message: `SandboxPool ${namespace}/${poolRef.name} does not exist; create it`,
  };
}

/** Who the project's bot is, as GitLab says. */
export async function checkProject(
  references: References,
  notes: NotesFactory,
  workflow: AgentWorkflow,
  path: string,
): Promise<ProjectCheck> {
  const token = await references.actionToken(workflow, path);
  if (token.kind === 'Invalid') return { path, ready: false, message: token.message };
  try {
    const user = await notes.notesFor(path, token.value).botUserId();
    return user.kind === 'Ok'
      ? { path, ready: true, botUserId: user.value }
      : { path, ready: false, message: `GitLab answers ${user.status} to the action token: ${user.message}` };
  } catch (error) {
    return { path, ready: false, message: error instanceof Error ? error.message : String(error) };
  }
}

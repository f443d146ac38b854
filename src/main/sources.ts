import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import type { HttpClient } from '../http/client.ts';
import type { References, Resolved } from '../settings/references.ts';
import type { ToolToken } from '../settings/tokens.ts';
import type { DeclaredSources } from '../sources/factory.ts';
import { type KonfluxAccess, openKonflux } from '../sources/konflux/tools.ts';
import { declaredServers } from './mcp.ts';

/** What the credentials of data sources are found and opened with. */
export interface SourceCredentials {
  readonly references: References;
  readonly http: HttpClient;
  /** Full paths of programs that may be started as MCP servers. Default: none. */
  readonly programs?: readonly string[];
  /** Told what inside a credential is a secret by itself. */
  onSecret(value: string): void;
}

type Spec = AgentWorkflow['spec']['dataSources'];

/** What the workflow declares for the project, with every credential; Invalid says all that cannot be had. */
export async function declaredSources(
  credentials: SourceCredentials,
  workflow: AgentWorkflow,
  project: string,
): Promise<Resolved<DeclaredSources>> {
  const { dataSources } = workflow.spec;
  const [token, konflux] = await Promise.all([
    readToken(credentials.references, workflow, project),
    konfluxAccess(credentials, workflow),
  ]);
  if (token.kind === 'Invalid' || konflux.kind === 'Invalid') return allInvalid([token, konflux]);
  const allowedProjects = dataSources.gitlab?.allowedProjects ?? [];
  return {
    kind: 'Ok',
    value: {
      ...(token.value === undefined ? {} : { gitlab: { token: token.value, allowedProjects } }),
      ...(konflux.value === undefined ? {} : { konflux: konflux.value }),
      ...(dataSources.testingFarm === undefined ? {} : { testingFarm: farmOf(dataSources.testingFarm) }),
    },
  };
}

/** Whether everything that a run of the workflow on the project reads with can be had. */
export async function sourceAccess(
  credentials: SourceCredentials,
  workflow: AgentWorkflow,
  project: string,
): Promise<Resolved<unknown>> {
  const found = await Promise.all([
    declaredSources(credentials, workflow, project),
    declaredServers({ programs: [], ...credentials }, workflow),
  ]);
  return found.some(({ kind }) => kind === 'Invalid') ? allInvalid(found) : { kind: 'Ok', value: undefined };
}

/** Undefined value: the workflow declares no GitLab source for the project. */
export async function readToken(
  references: References,
  workflow: AgentWorkflow,
  project: string,
): Promise<Resolved<ToolToken | undefined>> {
  const declared =
    workflow.spec.dataSources.gitlab !== undefined ||
    workflow.spec.projects.some(({ path, tokens }) => path === project && tokens?.gitlab !== undefined);
  return declared ? references.gitlabToolToken(workflow, project) : { kind: 'Ok', value: undefined };
}

/** Undefined value: the workflow declares no Konflux. Nothing is connected to. */
export async function konfluxAccess(
  { references, http, onSecret }: SourceCredentials,
  workflow: AgentWorkflow,
): Promise<Resolved<KonfluxAccess | undefined>> {
  const { konflux } = workflow.spec.dataSources;
  const kubeconfig = await references.konfluxKubeconfig(workflow);
  if (kubeconfig.kind === 'Invalid') return kubeconfig;
  if (konflux === undefined || kubeconfig.value === undefined) return { kind: 'Ok', value: undefined };
  const opened = openKonflux({
    http,
    clusterUrl: konflux.clusterURL,
    kubeconfig: kubeconfig.value,
    ...(konflux.kubearchiveURL === undefined ? {} : { kubearchiveUrl: konflux.kubearchiveURL }),
    onSecret,
  });
  if (opened.kind === 'Ok') return { kind: 'Ok', value: opened.access };
  return {
    kind: 'Invalid',
    reason: 'InvalidKubeconfig',
    message: `spec.dataSources.konflux: ${opened.message}`,
  };
}

function farmOf({ artifactsURL, apiURL }: NonNullable<Spec['testingFarm']>) {
  return {
    ...(artifactsURL === undefined ? {} : { artifactsUrl: artifactsURL }),
    ...(apiURL === undefined ? {} : { apiUrl: apiURL }),
  };
}

/** One refusal for several: the reason of the first, the messages of all. */
function allInvalid(found: readonly Resolved<unknown>[]): Extract<Resolved<never>, { kind: 'Invalid' }> {
  const invalid = found.filter((one) => one.kind === 'Invalid');
  return {
    kind: 'Invalid',
    reason: invalid[0]?.reason ?? 'NotFound',
    message: invalid.map(({ message }) => message).join('; '),
  };
}

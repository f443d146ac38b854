import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import type { References, Resolved } from '../settings/references.ts';
import type { ToolToken } from '../settings/tokens.ts';
import type { DeclaredSources } from '../sources/factory.ts';

/** What the workflow declares for the project, with every credential; Invalid names the first that cannot be had. */
export async function declaredSources(
  references: References,
  workflow: AgentWorkflow,
  project: string,
): Promise<Resolved<DeclaredSources>> {
  const gitlab = await readToken(references, workflow, project);
  if (gitlab?.kind === 'Invalid') return gitlab;
  const { dataSources } = workflow.spec;
  const allowedProjects = dataSources.gitlab?.allowedProjects ?? [];
  return {
    kind: 'Ok',
    value: {
      ...(gitlab === undefined ? {} : { gitlab: { token: gitlab.value, allowedProjects } }),
      ...(dataSources.testingFarm === undefined ? {} : { testingFarm: farmOf(dataSources.testingFarm) }),
    },
  };
}

/** Undefined when the workflow declares no GitLab source for the project. */
export async function readToken(
  references: References,
  workflow: AgentWorkflow,
  project: string,
): Promise<Resolved<ToolToken> | undefined> {
  const declared =
    workflow.spec.dataSources.gitlab !== undefined ||
    workflow.spec.projects.some(({ path, tokens }) => path === project && tokens?.gitlab !== undefined);
  return declared ? references.gitlabToolToken(workflow, project) : undefined;
}

function farmOf({
  artifactsURL,
  apiURL,
}: NonNullable<AgentWorkflow['spec']['dataSources']['testingFarm']>): DeclaredSources['testingFarm'] &
  object {
  return {
    ...(artifactsURL === undefined ? {} : { artifactsUrl: artifactsURL }),
    ...(apiURL === undefined ? {} : { apiUrl: apiURL }),
  };
}

import type { Tool } from '../../../agent/tools/port.ts';
import type { HttpClient } from '../../../http/client.ts';
import { toolToken } from '../../../settings/tokens.ts';
import { toolsOf } from '../../../sources/factory.ts';
import { type KonfluxAccess, openKonflux } from '../../../sources/konflux/tools.ts';
import type { PipelineCase } from '../pipeline-case.ts';
import { gitlabRoutes } from './gitlab.ts';
import { konfluxRoutes } from './konflux.ts';
import { ARTIFACTS_URL, CLUSTER_URL, FARM_API_URL, GITLAB_URL, NAMESPACE, SCOPE } from './places.ts';
import { routedHttp } from './routes.ts';
import { farmRoutes } from './testing-farm.ts';

/**
 * The shipped tools, down to their scope and their words for what is not there; only what they would reach over the
 * network is answered from the case. All three sources are declared, as they are where the workflow is used.
 */
export function pipelineTools(one: PipelineCase): {
  readonly tools: readonly Tool[];
  /** What was asked of GitLab, Konflux or Testing Farm that the case does not have, as method and URL. */
  readonly strays: readonly string[];
} {
  const { http, strays } = routedHttp([...gitlabRoutes(one), ...konfluxRoutes(one), ...farmRoutes(one)]);
  const tools = toolsOf(
    {
      gitlab: { token: toolToken('eval'), allowedProjects: [] },
      konflux: konflux(http),
      testingFarm: { artifactsUrl: ARTIFACTS_URL, apiUrl: FARM_API_URL },
    },
    { http, gitlabUrl: GITLAB_URL },
    SCOPE,
  );
  return { tools, strays };
}

function konflux(http: HttpClient): KonfluxAccess {
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'eval',
    clusters: [{ name: 'eval', cluster: { server: CLUSTER_URL } }],
    users: [{ name: 'eval', user: { token: 'eval' } }],
    contexts: [{ name: 'eval', context: { cluster: 'eval', user: 'eval' } }],
  };
  const opened = openKonflux({
    http,
    clusterUrl: `${CLUSTER_URL}/ns/${NAMESPACE}`,
    kubeconfig: toolToken(JSON.stringify(kubeconfig)),
  });
  if (opened.kind === 'Invalid') throw new Error(`the kubeconfig of the evals: ${opened.message}`);
  return opened.access;
}

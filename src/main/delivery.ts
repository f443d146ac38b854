import { createBumpWriter } from '../bumps/gitlab-writer.ts';
import { chartsByRepository } from '../charts/by-repository.ts';
import type { DeliveryMeans } from '../controllers/run/deps.ts';
import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import { sandboxHelm } from '../delivery/helm.ts';
import { loadDeliveryPrompts } from '../delivery/prompts/files.ts';
import type { HttpClient } from '../http/client.ts';
import type { OperatorSettings } from '../settings/operator.ts';
import type { References, Resolved } from '../settings/references.ts';
import { createBumpReader } from '../sources/bumps/reader.ts';

/** What runs on chart bumps read and write with: the read token reads, the project's action token writes. */
export function joinDelivery({
  settings,
  http,
  references,
}: {
  readonly settings: Pick<OperatorSettings, 'gitlabUrl' | 'chartRepositories'>;
  readonly http: HttpClient;
  readonly references: References;
}): (workflow: AgentWorkflow, project: string) => Promise<Resolved<DeliveryMeans>> {
  const baseUrl = settings.gitlabUrl;
  const charts = chartsByRepository({ http, configured: settings.chartRepositories });
  return async (workflow, project) => {
    const [read, write, prompts] = await Promise.all([
      references.gitlabToolToken(workflow, project),
      references.actionToken(workflow, project),
      loadDeliveryPrompts(),
    ]);
    if (read.kind === 'Invalid') return read;
    if (write.kind === 'Invalid') return write;
    return {
      kind: 'Ok',
      value: {
        reader: createBumpReader({ http, baseUrl, token: read.value }),
        writer: createBumpWriter({ http, baseUrl, project, token: write.value }),
        charts,
        prompts,
        helmIn: (sandbox) => sandboxHelm(sandbox),
        live: async () => undefined,
        testimony: async () => ({ silence: 'nothing upstream is read' }),
      },
    };
  };
}

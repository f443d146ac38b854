import type { Logger } from 'pino';
import { createBumpWriter } from '../bumps/gitlab-writer.ts';
import { chartsByRepository } from '../charts/by-repository.ts';
import type { DeliveryMeans } from '../controllers/run/deps.ts';
import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import type { DeliverParts } from '../delivery/deliver.ts';
import { sandboxHelm } from '../delivery/helm.ts';
import { loadDeliveryPrompts } from '../delivery/prompts/files.ts';
import type { OperatorSettings } from '../settings/operator.ts';
import type { Resolved } from '../settings/references.ts';
import { createBumpReader } from '../sources/bumps/reader.ts';
import { openLiveFacts } from '../sources/live/facts.ts';
import { createTestimony } from '../upstream/testimony.ts';
import type { SourceCredentials } from './sources.ts';

export interface DeliveryCredentials extends SourceCredentials {
  /** Told why something was left out, in one sentence. */
  warn(message: string): void;
}

/** What runs on chart bumps read and write with: the read token reads, the project's action token writes. */
export function joinDelivery({
  settings,
  log,
  ...credentials
}: Omit<DeliveryCredentials, 'warn'> & {
  readonly settings: Pick<OperatorSettings, 'gitlabUrl' | 'chartRepositories'>;
  readonly log: Pick<Logger, 'warn'>;
}): (workflow: AgentWorkflow, project: string) => Promise<Resolved<DeliveryMeans>> {
  const { http, references } = credentials;
  const baseUrl = settings.gitlabUrl;
  const charts = chartsByRepository({ http, configured: settings.chartRepositories });
  return async (workflow, project) => {
    const [read, write, live, prompts] = await Promise.all([
      references.gitlabToolToken(workflow, project),
      references.actionToken(workflow, project),
      liveFacts({ ...credentials, warn: (message) => log.warn(message) }, workflow),
      loadDeliveryPrompts(),
    ]);
    if (read.kind === 'Invalid') return read;
    if (write.kind === 'Invalid') return write;
    if (live.kind === 'Invalid') return live;
    const {
      enabled = false,
      maxReleases = 0,
      maxCommits = 0,
      maxBodyChars = 0,
    } = workflow.spec.delivery?.upstreamNotes ?? {};
    return {
      kind: 'Ok',
      value: {
        reader: createBumpReader({ http, baseUrl, token: read.value }),
        writer: createBumpWriter({ http, baseUrl, project, token: write.value }),
        charts,
        prompts,
        helmIn: (sandbox) => sandboxHelm(sandbox),
        live: live.value,
        testimony: createTestimony({ http, enabled, maxReleases, maxCommits, maxBodyChars }),
      },
    };
  };
}

/** Counts nothing where the workflow does not let it. Nothing is connected to before it is asked. */
export async function liveFacts(
  { http, references, onSecret, warn }: DeliveryCredentials,
  workflow: AgentWorkflow,
): Promise<Resolved<DeliverParts['live']>> {
  const kubeconfig = await references.liveKubeconfig(workflow);
  if (kubeconfig.kind === 'Invalid') return kubeconfig;
  if (kubeconfig.value === undefined) return { kind: 'Ok', value: async () => undefined };
  const opened = openLiveFacts({ http, kubeconfig: kubeconfig.value, onSecret, warn });
  if (opened.kind === 'Invalid')
    return {
      kind: 'Invalid',
      reason: 'InvalidKubeconfig',
      message: `spec.delivery.liveReads.kubeconfigSecretRef: ${opened.message}`,
    };
  const { facts } = opened;
  return {
    kind: 'Ok',
    value: ({ applications }, signal) =>
      facts(
        applications.flatMap(({ droppedVersions }) => droppedVersions),
        signal,
      ),
  };
}

import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { OperatorParts } from '../cli/operator.ts';
import { configurationMetrics } from '../controllers/configuration/metrics.ts';
import { createConfigurationReload, type FileReading } from '../controllers/configuration/reload.ts';
import type { AgentRun } from '../crds/agent-run.ts';
import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import { isTerminal } from '../crds/reasons.ts';
import { systemClock } from '../kube/clock.ts';
import type { Informer } from '../kube/informer.ts';
import type { EventRecorder, KubeClient } from '../kube/port.ts';
import type { Environment } from '../settings/environment.ts';
import { clusterSecretRef } from '../settings/file/cluster-secrets.ts';
import { ConfigError, faultLine } from '../settings/file/faults.ts';
import { type ClusterNamespaces, clusterConfig } from '../settings/file/to-crs.ts';
import { loadConfig } from '../settings/file.ts';
import { SettingsError } from '../settings/operator.ts';

export interface ConfigurationParts extends ClusterNamespaces {
  /** Undefined: workflows are applied by people. */
  readonly path: string | undefined;
  readonly env: Environment;
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  readonly workflows: Informer<AgentWorkflow>;
  readonly runs: Informer<AgentRun>;
  readonly registry: Registry;
  readonly log: Logger;
}

/** What keeps the namespace's workflows as the configuration file says, while this replica leads. */
export function joinConfiguration({ path, env, ...parts }: ConfigurationParts): {
  readonly loops: OperatorParts['loops'];
  readonly checks: OperatorParts['checks'];
} {
  if (path === undefined) return { loops: [], checks: [] };
  const { kube, events, log, workflows, runs, registry } = parts;
  const reload = createConfigurationReload({
    ...{ kube, events, log, path, clock: systemClock, metrics: configurationMetrics(registry) },
    read: () => readConfiguration(path, env, parts),
    workflows: () => workflows.list(),
    isBusy: (name) =>
      runs.list(({ spec, status }) => spec.workflowRef.name === name && !isTerminal(status?.phase)).length >
      0,
  });
  return {
    loops: [{ name: 'configuration', run: (signal) => reload.run(signal) }],
    // What was applied before goes on, so the replica is ready all the same.
    checks: [{ name: 'configuration', problem: () => undefined, notice: () => reload.problem() }],
  };
}

/** The file as AgentWorkflows, as `config to-crs` has them. */
export async function readConfiguration(
  path: string,
  env: Environment,
  namespaces: ClusterNamespaces,
): Promise<FileReading> {
  try {
    const config = await loadConfig(path, { env, secretRef: clusterSecretRef });
    return { kind: 'Good', workflows: clusterConfig(config, namespaces).workflows };
  } catch (error) {
    if (error instanceof ConfigError)
      return { kind: 'Faulty', faults: error.faults.map((fault) => faultLine(path, fault)) };
    if (error instanceof SettingsError) return { kind: 'Faulty', faults: [error.message] };
    throw error;
  }
}

import type { AgentRun } from '../crds/agent-run.ts';
import { labelValue } from '../crds/labels.ts';
import { LABELS, MANAGED_BY } from '../crds/meta.ts';
import { createClient } from '../kube/client.ts';
import { sleep, systemClock } from '../kube/clock.ts';
import { type Connection, connect, defaultSource } from '../kube/config.ts';
import { execConnection } from '../kube/exec-connection.ts';
import { createTransport } from '../kube/transport.ts';
import { podSandbox } from '../sandbox/pod/pod.ts';
import { podPool } from '../sandbox/pool/pool.ts';
import { SandboxUnavailableError } from '../sandbox/port.ts';
import type { Config } from '../settings/file.ts';
import { SettingsError } from '../settings/operator.ts';
import type { RunSettings } from '../settings/run.ts';
import { AFTER_RUN_MS, loggerOf, type RunSandboxes, type RunSandboxOptions } from './run-sandbox-parts.ts';

const CLAIM_RETRY_MS = 250;

/** Pods of a SandboxPool, claimed as the operator claims them. */
export function poolPods({
  settings,
  config,
  effective,
  env,
  run,
  sessionId,
  ...rest
}: RunSandboxOptions): RunSandboxes {
  const { kubeconfig, context } = settings;
  const connection = connect(
    defaultSource({
      env,
      ...(kubeconfig === undefined ? {} : { kubeconfig }),
      ...(context === undefined ? {} : { context }),
    }),
  );
  const pool = poolOf(settings, config, run, connection);
  const logger = loggerOf(rest);
  const transport = createTransport(connection);
  const client = createClient(transport);
  const exec = execConnection(connection);
  const sandboxes = podPool({
    kube: client,
    openPod: ({ pod, namespace, name, deletePod }) =>
      podSandbox({
        ...{ connection: exec, client, namespace, pod: name, deletePod, logger },
        ref: { kind: 'PodPool', name, namespace },
        ...(pod.metadata.uid === undefined ? {} : { uid: pod.metadata.uid }),
      }),
  });
  const { name: workflow } = run.spec.workflowRef;
  let epoch = 0;
  return {
    async open(signal) {
      epoch += 1;
      for (let said = ''; ; ) {
        signal.throwIfAborted();
        const claimed = await sandboxes.claim(
          {
            runUid: run.metadata.uid ?? '',
            runName: run.metadata.name ?? '',
            // No AgentRun stands behind it; a namespace would make the reaper look for one, and find it gone.
            runNamespace: '',
            ...{ workflow, sessionId, pool, epoch },
            labels: { [LABELS.managedBy]: MANAGED_BY, [LABELS.workflow]: labelValue(workflow) },
            reapBy: new Date(systemClock.now().getTime() + effective.timeoutMs + AFTER_RUN_MS),
          },
          signal,
        );
        if (claimed.kind === 'Unavailable') throw new SandboxUnavailableError(claimed.message);
        if (claimed.kind === 'Claimed') {
          await claimed.sandbox.start(signal);
          return claimed.sandbox;
        }
        if (claimed.message !== said) rest.progress.say(claimed.message);
        said = claimed.message;
        await sleep(systemClock, CLAIM_RETRY_MS, signal);
      }
    },
    async close() {
      // What an interrupted claim has left behind.
      await sandboxes.release(run.metadata.uid ?? '', pool.namespace).catch((error: unknown) => {
        logger.warn({ error }, 'pods of this run could not be released; the reaper will');
      });
      await transport.close();
    },
  };
}

/** The run's own word, else the flags, else the file; the namespace at last from the context. */
function poolOf(
  settings: RunSettings,
  config: Config,
  run: AgentRun,
  connection: Connection,
): { readonly name: string; readonly namespace: string } {
  const wanted = run.spec.sandbox?.poolRef;
  const name = wanted?.name ?? settings.pool ?? config.settings.sandbox.pool;
  if (name === undefined)
    throw new SettingsError(
      `no SandboxPool is named: set settings.sandbox.pool in ${config.path}, or give --pool`,
    );
  const namespace =
    wanted?.namespace ?? settings.namespace ?? config.settings.sandbox.namespace ?? connection.namespace;
  if (namespace === undefined)
    throw new SettingsError(
      `the context names no namespace for SandboxPool ${name}: give --namespace, or set settings.sandbox.namespace`,
    );
  return { name, namespace };
}

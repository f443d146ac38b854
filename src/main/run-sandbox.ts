import type { Progress } from '../cli/progress.ts';
import type { RunParts } from '../cli/run.ts';
import type { AgentRun } from '../crds/agent-run.ts';
import { labelValue } from '../crds/labels.ts';
import { LABELS, MANAGED_BY } from '../crds/meta.ts';
import type { Redactor } from '../http/redaction.ts';
import { createClient } from '../kube/client.ts';
import { sleep, systemClock } from '../kube/clock.ts';
import { type Connection, connect, defaultSource } from '../kube/config.ts';
import { execConnection } from '../kube/exec-connection.ts';
import type { Logger } from '../kube/log.ts';
import { createTransport } from '../kube/transport.ts';
import { podSandbox } from '../sandbox/pod.ts';
import { podmanSandbox } from '../sandbox/podman.ts';
import { podPool } from '../sandbox/pool.ts';
import { SandboxUnavailableError } from '../sandbox/port.ts';
import type { Environment } from '../settings/environment.ts';
import type { Config } from '../settings/file.ts';
import { SettingsError } from '../settings/operator.ts';
import type { RunSettings } from '../settings/run.ts';

export interface RunSandboxes {
  readonly open: RunParts['openSandbox'];
  close(): Promise<void>;
}

export interface RunSandboxOptions {
  readonly settings: RunSettings;
  readonly config: Config;
  readonly backend: 'podman' | 'k8spool' | 'none';
  readonly run: AgentRun;
  readonly sessionId: string;
  readonly effective: RunParts['effective'];
  readonly env: Environment;
  readonly redactor: Redactor;
  readonly progress: Progress;
}

/** Reporting and saving need the sandbox after the run's own time. */
const AFTER_RUN_MS = 5 * 60_000;
const CLAIM_RETRY_MS = 250;

/** Where a run outside the operator gets its sandboxes. Throws SettingsError for what is not named. */
export function openSandboxes(options: RunSandboxOptions): RunSandboxes {
  switch (options.backend) {
    case 'none':
      return { open: undefined, close: async () => undefined };
    case 'podman':
      return podmanContainers(options);
    case 'k8spool':
      return poolPods(options);
    default:
      return options.backend satisfies never;
  }
}

function podmanContainers({ settings, config, effective, env, ...rest }: RunSandboxOptions): RunSandboxes {
  const image = settings.image ?? config.settings.sandbox.image;
  if (image === undefined)
    throw new SettingsError(
      `no sandbox image is named: set settings.sandbox.image in ${config.path}, or give --image`,
    );
  const least = Math.ceil((effective.timeoutMs + AFTER_RUN_MS) / 1000);
  const maxLifetimeSeconds = Math.max(config.settings.sandbox.active_deadline_seconds, least);
  return {
    async open(signal) {
      const sandbox = podmanSandbox({ image, env, maxLifetimeSeconds, logger: loggerOf(rest) });
      await sandbox.start(signal);
      return sandbox;
    },
    close: async () => undefined,
  };
}

function poolPods({
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

/** Only what people have to know: the room's details are for the operator's log. */
function loggerOf({ progress, redactor }: Pick<RunSandboxOptions, 'progress' | 'redactor'>): Logger {
  const say = (fields: object, message: string): void => {
    const why = 'error' in fields ? ` (${String(fields.error)})` : '';
    progress.say(redactor.redact(`${message}${why}`));
  };
  return { debug: () => undefined, info: say, warn: say, error: say };
}

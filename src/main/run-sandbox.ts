import type { Progress } from '../cli/progress.ts';
import type { RunParts } from '../cli/run.ts';
import type { AgentRun } from '../crds/agent-run.ts';
import type { Redactor } from '../http/redaction.ts';
import type { Logger } from '../kube/log.ts';
import { podmanSandbox } from '../sandbox/podman.ts';
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
export const AFTER_RUN_MS = 5 * 60_000;

/** Where a run outside the operator gets its sandboxes. Throws SettingsError for what is not named. */
export async function openSandboxes(options: RunSandboxOptions): Promise<RunSandboxes> {
  switch (options.backend) {
    case 'none':
      return { open: undefined, close: async () => undefined };
    case 'podman':
      return podmanContainers(options);
    case 'k8spool':
      // The packages that speak to a cluster take half a second to load.
      return (await import('./run-pool.ts')).poolPods(options);
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

/** Only what people have to know: the room's details are for the operator's log. */
export function loggerOf({ progress, redactor }: Pick<RunSandboxOptions, 'progress' | 'redactor'>): Logger {
  const say = (fields: object, message: string): void => {
    const why = 'error' in fields ? ` (${String(fields.error)})` : '';
    progress.say(redactor.redact(`${message}${why}`));
  };
  return { debug: () => undefined, info: say, warn: say, error: say };
}

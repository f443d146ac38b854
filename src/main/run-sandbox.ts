import { podmanSandbox } from '../sandbox/podman/podman.ts';
import { SettingsError } from '../settings/operator.ts';
import { AFTER_RUN_MS, loggerOf, type RunSandboxes, type RunSandboxOptions } from './run-sandbox-parts.ts';

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

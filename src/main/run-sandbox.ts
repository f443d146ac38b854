import { podmanSandbox } from '../sandbox/podman/podman.ts';
import {
  imageOf,
  lifetimeSeconds,
  loggerOf,
  type RunSandboxes,
  type RunSandboxOptions,
} from './run-sandbox-parts.ts';

/** Where a run outside the operator gets its sandboxes. Throws SettingsError for what is not named. */
export async function openSandboxes(options: RunSandboxOptions): Promise<RunSandboxes> {
  switch (options.backend) {
    case 'none':
      return { open: undefined, close: async () => undefined };
    case 'podman':
      return podmanContainers(options);
    // The packages that speak to a cluster take half a second to load.
    case 'k8s':
      return (await import('./run-pod.ts')).ownPods(options);
    case 'kubevirt':
      return (await import('./run-machine.ts')).ownMachines(options);
    case 'k8spool':
    case 'kubevirtpool':
      return (await import('./run-pool.ts')).poolSandboxes(options);
    default:
      // A backend that `backendOf` lets through and that is missing here does not compile.
      return options.backend satisfies never;
  }
}

function podmanContainers(options: RunSandboxOptions): RunSandboxes {
  const image = imageOf(options);
  return {
    async open(signal) {
      const sandbox = podmanSandbox({
        ...{ image, env: options.env, logger: loggerOf(options) },
        maxLifetimeSeconds: lifetimeSeconds(options),
      });
      await sandbox.start(signal);
      return sandbox;
    },
    close: async () => undefined,
  };
}

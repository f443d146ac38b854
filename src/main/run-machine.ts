import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { systemClock } from '../kube/clock.ts';
import { openOwnMachine } from '../sandbox/vm/own.ts';
import { openCluster } from './run-cluster.ts';
import {
  imageOf,
  lifetimeSeconds,
  loggerOf,
  type RunSandboxes,
  type RunSandboxOptions,
} from './run-sandbox-parts.ts';

/** Machines that this run makes for itself. KubeVirt must be there, and a way from here to the pod network. */
export function ownMachines(options: RunSandboxOptions): RunSandboxes {
  const { run, progress, config, env } = options;
  const { vm_user: user, vm_cpu_cores: cpuCores, vm_memory: memory } = config.settings.sandbox;
  const containerDisk = imageOf(options);
  const cluster = openCluster(options);
  const namespace = cluster.namespace();
  return {
    open(signal) {
      const name = `hb-sandbox-${randomBytes(4).toString('hex')}`;
      progress.say(`making machine ${namespace}/${name}`);
      return openOwnMachine(
        {
          ...{ namespace, name, user },
          machine: { containerDisk, cpuCores, memory },
          runUid: run.metadata.uid ?? '',
          workflow: run.spec.workflowRef.name,
          reapBy: new Date(systemClock.now().getTime() + 1000 * lifetimeSeconds(options)),
        },
        {
          ...{ kube: cluster.kube, apiServer: cluster.apiServer, env, tempDir: tmpdir() },
          prove: config.settings.sandbox.egress_probe,
          logger: loggerOf(options),
        },
        signal,
      );
    },
    close: () => cluster.close(),
  };
}

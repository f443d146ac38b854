import { randomBytes } from 'node:crypto';
import { openOwnPod } from '../sandbox/pod/own.ts';
import { openCluster } from './run-cluster.ts';
import {
  imageOf,
  lifetimeSeconds,
  loggerOf,
  type RunSandboxes,
  type RunSandboxOptions,
} from './run-sandbox-parts.ts';

/** Pods that this run makes for itself, in a cluster that need not know the operator. */
export function ownPods(options: RunSandboxOptions): RunSandboxes {
  const { run, progress } = options;
  const image = imageOf(options);
  const cluster = openCluster(options);
  const namespace = cluster.namespace();
  return {
    open(signal) {
      const name = `hb-sandbox-${randomBytes(4).toString('hex')}`;
      progress.say(`making pod ${namespace}/${name}`);
      return openOwnPod(
        {
          ...{ namespace, name, image },
          runUid: run.metadata.uid ?? '',
          workflow: run.spec.workflowRef.name,
          activeDeadlineSeconds: lifetimeSeconds(options),
        },
        {
          ...{ kube: cluster.kube, connection: cluster.exec, apiServer: cluster.apiServer },
          prove: options.config.settings.sandbox.egress_probe,
          logger: loggerOf(options),
        },
        signal,
      );
    },
    close: () => cluster.close(),
  };
}

import { inject } from 'vitest';
import { attachCluster } from '../../hack/cluster/cluster.ts';
import { POD, type Pod } from '../../src/kube/kinds.ts';
import { silentLogger } from '../../src/kube/log.ts';
import { podSandbox } from '../../src/sandbox/pod/pod.ts';
import { sandboxPod } from '../cluster/shared.ts';
import { sandboxExhaustion } from './exhaustion.ts';
import { openPods } from './pods.ts';

sandboxExhaustion('pod', async () => {
  await expectPidsLimit();
  const pods = await openPods();
  let made = 0;
  return {
    make: async () => {
      made += 1;
      const name = `small-${made}`;
      const pod = await pods.client.create(POD, smallPod(name, pods.namespace));
      const sandbox = podSandbox({
        ...{ connection: pods.connection, client: pods.client, namespace: pods.namespace, pod: name },
        ...(pod.metadata.uid === undefined ? {} : { uid: pod.metadata.uid }),
        ref: { kind: 'Pod', name, namespace: pods.namespace },
        deletePod: () => pods.delete(name),
        logger: silentLogger,
      });
      await sandbox.start();
      return sandbox;
    },
    dispose: () => pods.dispose(),
  };
});

function smallPod(name: string, namespace: string): Pod {
  const pod = sandboxPod(name) as Pod; // what a manifest is before the API server has filled it in
  const resources = { requests: { cpu: '50m', memory: '64Mi' }, limits: { cpu: '1', memory: '256Mi' } };
  return {
    ...pod,
    metadata: { ...pod.metadata, namespace },
    spec: {
      ...pod.spec,
      containers: pod.spec.containers.map((container) => ({ ...container, resources })),
      volumes: [{ name: 'tmp', emptyDir: { sizeLimit: '64Mi' } }],
    },
  };
}

/** Without it the tests would show nothing, and cost the node a thousand processes. */
async function expectPidsLimit(): Promise<void> {
  const { kubectl, nodeName } = await attachCluster(inject('cluster').stateDir);
  const config: unknown = JSON.parse(
    await kubectl(['get', '--raw', `/api/v1/nodes/${nodeName}/proxy/configz`]),
  );
  if (!JSON.stringify(config).includes('"podPidsLimit":1024'))
    throw new Error('the cluster sets no podPidsLimit: start it again with hack/cluster/main.ts');
}

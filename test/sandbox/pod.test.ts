import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { POD } from '../../src/kube/kinds.ts';
import { silentLogger } from '../../src/kube/log.ts';
import { podSandbox } from '../../src/sandbox/pod/pod.ts';
import { SandboxLostError, SandboxUnavailableError } from '../../src/sandbox/port.ts';
import { sandboxConformance } from './conformance.ts';
import { openPods, type Pods } from './pods.ts';

function sandboxOf(pods: Pods, name: string, uid: string, startTimeoutMs = 60_000) {
  const { connection, client, namespace } = pods;
  return podSandbox({
    ...{ connection, client, namespace, uid, startTimeoutMs },
    pod: name,
    ref: { kind: 'Pod', name, namespace },
    deletePod: () => pods.delete(name),
    logger: silentLogger,
  });
}

sandboxConformance('pod', async () => {
  const pods = await openPods();
  let made = 0;
  return {
    make: async () => {
      made += 1;
      const name = `box-${made}`;
      const { uid } = await pods.create(name);
      return sandboxOf(pods, name, uid);
    },
    lose: (sandbox) => pods.delete(sandbox.ref.name),
    exists: async ({ ref }) =>
      (await pods.client.get(POD, { namespace: pods.namespace, name: ref.name })) !== undefined,
    dispose: () => pods.dispose(),
  };
});

describe('a pod', () => {
  let pods: Pods;
  beforeAll(async () => {
    pods = await openPods();
  });
  afterAll(() => pods?.dispose());

  it('whose image is not there is unavailable, with the kubelet’s reason', async () => {
    const { uid } = await pods.create('no-image', 'hummingbird.test/absent:1","imagePullPolicy":"Never');
    const start = sandboxOf(pods, 'no-image', uid).start();
    await expect(start).rejects.toBeInstanceOf(SandboxUnavailableError);
    await expect(start).rejects.toThrow('ErrImageNeverPull');
  });

  it('that never existed is lost', async () => {
    await expect(sandboxOf(pods, 'nobody', 'no-uid').start()).rejects.toBeInstanceOf(SandboxLostError);
  });

  it('that gave its name to another is lost', async () => {
    const { uid } = await pods.ready('name');
    await pods.cluster.kubectl(['delete', 'pod', '-n', pods.namespace, 'name', '--wait=true']);
    await expect(sandboxOf(pods, 'name', uid).exec('true')).rejects.toBeInstanceOf(SandboxLostError);
  });

  it('that cannot be scheduled is unavailable when its time is over', async () => {
    const { uid } = await pods.create(
      'homeless',
      'hummingbird.test/sandbox:1","resources":{"requests":{"cpu":"500"}},"imagePullPolicy":"Never',
    );
    const start = sandboxOf(pods, 'homeless', uid, 2_000).start();
    await expect(start).rejects.toBeInstanceOf(SandboxUnavailableError);
    await expect(start).rejects.toThrow(/Unschedulable/);
  });
});

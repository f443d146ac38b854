import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ControlPlane, startControlPlane } from '../../hack/cluster/control-plane.ts';
import { createClient } from '../../src/kube/client.ts';
import { connect } from '../../src/kube/config.ts';
import { NAMESPACE } from '../../src/kube/kinds.ts';
import type { KubeClient } from '../../src/kube/port.ts';
import { createTransport, type Transport } from '../../src/kube/transport.ts';

/** An API server and etcd of this test's own, to be killed at will. */
export interface Plane {
  readonly control: ControlPlane;
  readonly transport: Transport;
  readonly client: KubeClient;
  /** A fresh namespace; its name. */
  namespace(): Promise<string>;
  stop(): Promise<void>;
}

export async function startPlane(): Promise<Plane> {
  const stateDir = mkdtempSync(join(tmpdir(), 'kube-test-'));
  const control = await startControlPlane({ stateDir, log: () => undefined, controllers: false });
  const transport = transportTo(control.kubeconfigPath);
  const client = createClient(transport);
  let made = 0;
  return {
    control,
    transport,
    client,
    async namespace() {
      made += 1;
      const name = `test-${process.pid}-${made}`;
      await client.create(NAMESPACE, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      return name;
    },
    async stop() {
      await transport.close();
      await control.stop();
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}

export function transportTo(kubeconfig: string): Transport {
  return createTransport(connect({ kind: 'Files', paths: [kubeconfig] }));
}

/** Polls until `condition` holds; fails with `what` after `withinMs`. Returns the milliseconds it took. */
export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  withinMs = 10_000,
): Promise<number> {
  const start = performance.now();
  while (!(await condition())) {
    if (performance.now() - start > withinMs) throw new Error(`not within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return performance.now() - start;
}

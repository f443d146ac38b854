import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import { type ControlPlane, startControlPlane } from '../../hack/cluster/control-plane.ts';
import { createClient } from '../../src/kube/client.ts';
import { connect } from '../../src/kube/config.ts';
import { NAMESPACE } from '../../src/kube/kinds.ts';
import type { KubeClient } from '../../src/kube/port.ts';
import '../cluster/setup.ts';
import { createTransport, type Transport } from '../../src/kube/transport.ts';

/** An API server to test against. */
export interface Api {
  readonly server: string;
  /** PEM of its authority. */
  readonly ca: Buffer;
  readonly token: string;
  readonly transport: Transport;
  readonly client: KubeClient;
  /** A fresh namespace; its name. */
  namespace(): Promise<string>;
  /** Deletes the namespaces and closes the connections. */
  close(): Promise<void>;
}

/** The API server of the run's cluster, which nobody may break. */
export function sharedApi(): Api {
  const { kubeconfigPath, server, caData, adminToken } = inject('cluster');
  return apiOf({ kubeconfigPath, server, ca: Buffer.from(caData, 'base64'), token: adminToken });
}

/** An API server and etcd of this test's own, to be killed at will. */
export interface Plane extends Api {
  readonly control: ControlPlane;
}

export async function startPlane(): Promise<Plane> {
  const stateDir = mkdtempSync(join(tmpdir(), 'kube-test-'));
  const control = await startControlPlane({ stateDir, log: () => undefined, controllers: false });
  const { kubeconfigPath, server, caData, adminToken } = control;
  const api = apiOf({ kubeconfigPath, server, ca: Buffer.from(caData, 'base64'), token: adminToken });
  return {
    ...api,
    control,
    async close() {
      await api.transport.close();
      await control.stop();
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}

function apiOf(access: {
  readonly kubeconfigPath: string;
  readonly server: string;
  readonly ca: Buffer;
  readonly token: string;
}): Api {
  const { kubeconfigPath, ...rest } = access;
  const transport = transportTo(kubeconfigPath);
  const client = createClient(transport);
  const names: string[] = [];
  return {
    ...rest,
    transport,
    client,
    async namespace() {
      const name = `kube-${process.pid}-${names.length}-${Date.now().toString(36)}`;
      names.push(name); // first, so that two at once do not take the same number
      await client.create(NAMESPACE, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      return name;
    },
    async close() {
      await Promise.all(names.map((name) => client.delete(NAMESPACE, { name })));
      await transport.close();
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
  withinMs = 60_000,
): Promise<number> {
  const start = performance.now();
  while (!(await condition())) {
    if (performance.now() - start > withinMs) throw new Error(`not within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return performance.now() - start;
}

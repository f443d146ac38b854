import { pino } from 'pino';
import { Registry } from 'prom-client';
import { type Cluster, startCluster } from '../../hack/cluster/cluster.ts';
import { installDefinitions } from '../../hack/operator/install.ts';
import { createPoolController } from '../../src/controllers/pool/controller.ts';
import type { KubeObject, ResourceKind } from '../../src/crds/meta.ts';
import { SANDBOX_POOLS, type SandboxPool } from '../../src/crds/sandbox-pool.ts';
import { createClient } from '../../src/kube/client.ts';
import { connect } from '../../src/kube/config.ts';
import { createEventRecorder } from '../../src/kube/events.ts';
import { type ExecConnection, execConnection } from '../../src/kube/exec-connection.ts';
import { createInformer, type Informer } from '../../src/kube/informer.ts';
import { DEPLOYMENT, NETWORK_POLICY, POD, type Pod } from '../../src/kube/kinds.ts';
import { silentLogger } from '../../src/kube/log.ts';
import type { KubeClient } from '../../src/kube/port.ts';
import { createTransport } from '../../src/kube/transport.ts';
import { joinEgress } from '../../src/main/egress.ts';
import { podSandbox } from '../../src/sandbox/pod/pod.ts';
import { podPool } from '../../src/sandbox/pool/pool.ts';
import type { Sandbox, SandboxProvider } from '../../src/sandbox/port.ts';
import { createNamespace } from '../cluster/shared.ts';

/** Pools, their probe and their claims, on a cluster of the test's own whose firewall it may stop. */
export interface EgressWorld {
  readonly cluster: Cluster;
  readonly kube: KubeClient;
  readonly namespace: string;
  readonly claims: SandboxProvider;
  pool(name: string): Promise<SandboxPool | undefined>;
  pods(name: string): readonly Pod[];
  /** A pod as a sandbox, whoever made it. */
  sandbox(pod: string): Sandbox;
  close(): Promise<void>;
}

export async function egressWorld(): Promise<EgressWorld> {
  const cluster = await startCluster({ name: `test-${process.pid}-egress`, log: () => {} });
  await installDefinitions(cluster);
  const namespace = await createNamespace(cluster);
  const connection = connect({ kind: 'Files', paths: [cluster.kubeconfigPath] });
  const transport = createTransport(connection);
  const kube = createClient(transport);
  const events = createEventRecorder({ client: kube, component: 'test', instance: 'test' });
  const informers: Informer[] = [];
  const informer = async <T extends KubeObject>(kind: ResourceKind<T>): Promise<Informer<T>> => {
    const made = createInformer({ transport, kind, namespace });
    informers.push(made);
    made.start();
    await made.waitForSync(AbortSignal.timeout(60_000));
    return made;
  };
  const [pools, pods, deployments, networkPolicies] = await Promise.all([
    informer(SANDBOX_POOLS),
    informer(POD),
    informer(DEPLOYMENT),
    informer(NETWORK_POLICY),
  ]);
  const exec = execConnection(connection);
  const egress = await joinEgress({
    ...{ kube, transport, exec, events, pools, pods },
    registry: new Registry(),
    log: pino({ level: 'silent' }),
    surroundings: { env: {}, nameServers: [], addresses: [], port: 8080 },
  });
  const controller = createPoolController({
    ...{ kube, events, pools, pods, deployments, networkPolicies },
    egress: egress.watch,
  });
  await controller.start();
  const stopping = new AbortController();
  const watching = egress.loop.run(stopping.signal);
  const sandbox = (name: string, uid?: string): Sandbox => openPod({ kube, exec, namespace, name, uid });
  return {
    ...{ cluster, kube, namespace },
    claims: podPool({
      kube,
      cachedPods: () => pods.list(),
      openPod: ({ pod, name }) => sandbox(name, pod.metadata.uid),
    }),
    pool: (name) => kube.get(SANDBOX_POOLS, { namespace, name }),
    pods: (name) => pods.list(({ metadata }) => metadata.labels?.['hummingbird.dev/pool'] === name),
    sandbox,
    async close() {
      stopping.abort(new Error('the test is over'));
      await watching;
      await controller.stop();
      await events.flush();
      await Promise.all(informers.map((made) => made.stop()));
      await transport.close();
      await cluster.stop();
    },
  };
}

function openPod(options: {
  readonly kube: KubeClient;
  readonly exec: ExecConnection;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string | undefined;
}): Sandbox {
  const { kube, exec, namespace, name, uid } = options;
  return podSandbox({
    ...{ connection: exec, client: kube, namespace, pod: name, logger: silentLogger },
    ref: { kind: 'PodPool', name, namespace },
    ...(uid === undefined ? {} : { uid }),
    deletePod: async () => void (await kube.delete(POD, { namespace, name })),
  });
}

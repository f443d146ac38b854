import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Registry } from 'prom-client';
import { z } from 'zod';
import type { OperatorParts } from '../cli/operator.ts';
import { egressMetrics } from '../controllers/pool/egress/metrics.ts';
import { type Probeable, probeablePod, refOf } from '../controllers/pool/egress/probeable.ts';
import type { ClusterAddresses } from '../controllers/pool/egress/targets.ts';
import { createEgressWatch, type EgressWatch } from '../controllers/pool/egress/watch.ts';
import { labelValue } from '../crds/labels.ts';
import { LABELS } from '../crds/meta.ts';
import type { SandboxPool } from '../crds/sandbox-pool.ts';
import type { ExecConnection } from '../kube/exec-connection.ts';
import type { Informer } from '../kube/informer.ts';
import type { Pod } from '../kube/kinds.ts';
import { VIRTUAL_MACHINE_INSTANCE, type VirtualMachineInstance } from '../kube/kubevirt/kinds.ts';
import { errorFields, type Logger } from '../kube/log.ts';
import type { EventRecorder, KubeClient } from '../kube/port.ts';
import type { Transport } from '../kube/transport.ts';
import { probeEgress } from '../sandbox/egress/probe.ts';
import { podSandbox } from '../sandbox/pod/pod.ts';
import type { Sandbox } from '../sandbox/port.ts';
import type { Machines } from './machines.ts';

export interface EgressParts {
  readonly kube: KubeClient;
  readonly transport: Transport;
  readonly exec: ExecConnection;
  readonly events: EventRecorder;
  readonly pools: Informer<SandboxPool>;
  readonly pods: Informer<Pod>;
  /** Left out: pools of machines are not probed. */
  readonly machines?: Machines;
  readonly registry: Registry;
  readonly log: Logger;
  /** The operator's own environment, name servers and addresses, which tell of the cluster that it runs in. */
  readonly surroundings: Surroundings;
}

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly nameServers: readonly string[];
  readonly addresses: readonly string[];
  readonly port: number;
}

/** The probe of pools, to be run by the leader. */
export async function joinEgress(
  parts: EgressParts,
): Promise<{ readonly watch: EgressWatch; readonly loop: OperatorParts['loops'][number] }> {
  const { kube, events, exec, pools, pods, machines, log } = parts;
  const watch = createEgressWatch({
    kube,
    events,
    pools: () => (pools.hasSynced ? pools.list() : []),
    sandboxes: (pool) =>
      pool.spec.backend === 'VirtualMachineInstance' ? (machines?.of(pool) ?? []) : sandboxesOf(pool, pods),
    probe: (sandbox, plan, signal) =>
      probeEgress(
        machineOf(sandbox, machines) ??
          podSandbox({
            connection: exec,
            client: kube,
            ref: { kind: 'PodPool', ...refOf(sandbox) },
            namespace: refOf(sandbox).namespace,
            pod: refOf(sandbox).name,
            ...(sandbox.object.metadata.uid === undefined ? {} : { uid: sandbox.object.metadata.uid }),
            deletePod: () => Promise.resolve(),
            logger: log,
          }),
        plan,
        signal,
      ),
    cluster: await clusterAddresses(parts),
    metrics: egressMetrics(parts.registry),
    logger: log,
  });
  return { watch, loop: { name: 'egress', run: (signal) => watch.run(signal) } };
}

/** Undefined for a pod. */
function machineOf({ kind, object }: Probeable, machines: Machines | undefined): Sandbox | undefined {
  // Whatever has this kind was made of a machine.
  return kind === VIRTUAL_MACHINE_INSTANCE
    ? machines?.pool.open(object as VirtualMachineInstance)
    : undefined;
}

function sandboxesOf(pool: SandboxPool, pods: Informer<Pod>): readonly Probeable[] {
  const { name = '', namespace } = pool.metadata;
  const label = labelValue(name);
  return pods
    .list(({ metadata }) => metadata.namespace === namespace && metadata.labels?.[LABELS.pool] === label)
    .map(probeablePod);
}

/** Addresses that are the operator's and its cluster's own; what cannot be found out is left out, with a word. */
async function clusterAddresses({ transport, surroundings, log }: EgressParts): Promise<ClusterAddresses> {
  const { env, nameServers, addresses, port } = surroundings;
  const { server } = transport.connection;
  const found = new Map<string, { address: string; port: number }>();
  const add = (address: string, at: number) => found.set(`${address} ${at}`, { address, port: at });
  const host = server.hostname.replace(/^\[|\]$/g, '');
  try {
    const own = isIP(host) > 0 ? [host] : (await lookup(host, { all: true })).map(({ address }) => address);
    for (const address of own) add(address, Number(server.port || 443));
    // The service's address may be what is configured; this is where the servers themselves listen.
    const answer = await transport.json({ method: 'GET', path: '/api', where: 'GET /api' });
    for (const { serverAddress } of Versions.parse(answer).serverAddressByClientCIDRs) {
      const url = new URL(`https://${serverAddress}`);
      if (isIP(url.hostname.replace(/^\[|\]$/g, '')) > 0)
        add(url.hostname.replace(/^\[|\]$/g, ''), Number(url.port || 443));
    }
  } catch (error) {
    log.warn(errorFields(error), 'the API server has an address that the egress probe does not try');
  }
  const service = env['KUBERNETES_SERVICE_HOST'];
  const inCluster = service !== undefined && isIP(service) > 0;
  if (inCluster) add(service, Number(env['KUBERNETES_SERVICE_PORT'] ?? 443));
  return {
    apiServers: [...found.values()],
    // Elsewhere they are a machine's, and no part of the cluster.
    nameServers: inCluster ? nameServers.filter((address) => isIP(address) > 0) : [],
    pods: inCluster ? addresses.slice(0, 2).map((address) => ({ address, port })) : [],
  };
}

const Versions = z.object({
  serverAddressByClientCIDRs: z.array(z.object({ serverAddress: z.string() })).default([]),
});

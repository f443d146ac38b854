import { METADATA_SERVICES, type SandboxPool } from '../../../crds/sandbox-pool.ts';
import type { ProbeTarget } from '../../../sandbox/port.ts';
import type { Probeable } from './probeable.ts';

/** Addresses of the cluster that a sandbox must not reach, as far as the operator can know them. */
export interface ClusterAddresses {
  /** The service's address and the servers' own. */
  readonly apiServers: readonly { readonly address: string; readonly port: number }[];
  /** The cluster's DNS. */
  readonly nameServers: readonly string[];
  /** Pods that surely listen: the operator's own. */
  readonly pods: readonly { readonly address: string; readonly port: number }[];
}

const KUBELET_PORT = 10250;
const DNS_PORT = 53;
/** Nothing need listen: a reset from the other pod's network shows that it was reached. */
const POD_PORT = 8080;
/** Enough to find a hole between pods, few enough for a pool of hundreds. */
const OTHER_SANDBOXES = 2;

/** What is tried from inside one sandbox of the pool; what its own environment names as API server comes on top. */
export function targetsFor(
  own: Probeable,
  pool: SandboxPool,
  others: readonly Probeable[],
  cluster: ClusterAddresses,
): readonly ProbeTarget[] {
  const mine = new Set([...own.addresses, ...own.nodeAddresses]);
  const siblings = others.flatMap(({ addresses }) => addresses).filter((address) => !mine.has(address));
  const targets: ProbeTarget[] = [];
  const tcp = (name: ProbeTarget['name'], address: string, port: number) =>
    targets.push({ name, address, port, udp: false });
  for (const { address, port } of cluster.apiServers) tcp('ApiServer', address, port);
  for (const address of own.nodeAddresses) tcp('Kubelet', address, KUBELET_PORT);
  for (const address of [...cluster.nameServers, ...own.nodeAddresses]) {
    targets.push({ name: 'Dns', address, port: DNS_PORT, udp: true });
    tcp('Dns', address, DNS_PORT);
  }
  for (const address of siblings.slice(0, OTHER_SANDBOXES)) tcp('Pod', address, POD_PORT);
  for (const { address, port } of cluster.pods) tcp('Pod', address, port);
  for (const { address, port } of pool.spec.egressProbe.targets)
    tcp(isMetadataService(address) ? 'Metadata' : 'Target', address, port);
  return targets;
}

const isMetadataService = (address: string): boolean =>
  METADATA_SERVICES.some((service) => service.address === address.toLowerCase());

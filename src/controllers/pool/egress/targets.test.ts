import { describe, expect, it } from 'vitest';
import { METADATA_SERVICES, type SandboxPool } from '../../../crds/sandbox-pool.ts';
import { POD } from '../../../kube/kinds.ts';
import type { Probeable } from './probeable.ts';
import { type ClusterAddresses, targetsFor } from './targets.ts';

const aPool = (targets: SandboxPool['spec']['egressProbe']['targets']): SandboxPool => ({
  apiVersion: 'hummingbird.dev/v1alpha1',
  kind: 'SandboxPool',
  metadata: { name: 'warm', namespace: 's' },
  spec: {
    replicas: 2,
    backend: 'Pod',
    pod: { image: 'i', workspace: { sizeLimit: '1Gi' } },
    claim: { timeout: '0s', createOnEmpty: false },
    maxActive: '30m',
    linger: { duration: '5m', max: 2 },
    egressProbe: { enabled: true, period: '30s', targets },
  },
});
const aSandbox = (...addresses: readonly string[]): Probeable => ({
  kind: POD,
  object: { apiVersion: 'v1', kind: 'Pod', metadata: { name: addresses[0] ?? '' } },
  addresses,
  nodeAddresses: ['10.1.0.1'],
  usable: true,
});
const NOTHING: ClusterAddresses = { apiServers: [], nameServers: [], pods: [] };
const inWords = (pool: SandboxPool, others: readonly Probeable[], cluster = NOTHING) =>
  targetsFor(aSandbox('10.2.0.1'), pool, others, cluster).map(
    ({ name, address, port, udp }) => `${name} ${address} ${port}${udp ? ' udp' : ''}`,
  );

describe('the targets of a probe', () => {
  it('are the node’s kubelet and its name server even when nothing else is known', () => {
    expect(inWords(aPool([]), [])).toEqual([
      'Kubelet 10.1.0.1 10250',
      'Dns 10.1.0.1 53 udp',
      'Dns 10.1.0.1 53',
    ]);
  });
  it('are the API servers, name servers and pods of the cluster', () => {
    const cluster: ClusterAddresses = {
      apiServers: [{ address: '10.96.0.1', port: 443 }],
      nameServers: ['10.96.0.10'],
      pods: [{ address: '10.2.0.9', port: 8080 }],
    };
    expect(inWords(aPool([]), [], cluster)).toEqual(
      expect.arrayContaining([
        'ApiServer 10.96.0.1 443',
        'Dns 10.96.0.10 53 udp',
        'Dns 10.96.0.10 53',
        'Pod 10.2.0.9 8080',
      ]),
    );
  });
  it('are two other sandboxes, never the own address', () => {
    const others = ['10.2.0.1', '10.2.0.2', '10.2.0.3', '10.2.0.4'].map((address) => aSandbox(address));
    expect(inWords(aPool([]), others).filter((target) => target.startsWith('Pod'))).toEqual([
      'Pod 10.2.0.2 8080',
      'Pod 10.2.0.3 8080',
    ]);
  });
  it('are what the pool names; the metadata services are called so', () => {
    const targets = [...METADATA_SERVICES, { address: '192.0.2.7', port: 5432 }];
    expect(inWords(aPool(targets), []).slice(3)).toEqual([
      'Metadata 169.254.169.254 80',
      'Metadata fd00:ec2::254 80',
      'Target 192.0.2.7 5432',
    ]);
  });
});

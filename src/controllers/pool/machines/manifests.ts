import { createHash } from 'node:crypto';
import { PROBE_AWAITED, PROBE_DISABLED } from '../../../crds/egress.ts';
import { labelValue, standbyLabels } from '../../../crds/labels.ts';
import { ANNOTATIONS, LABELS } from '../../../crds/meta.ts';
import type { SandboxPool, SandboxPoolSpec } from '../../../crds/sandbox-pool.ts';
import type { NetworkPolicy, Secret } from '../../../kube/kinds.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceReplicaSet,
} from '../../../kube/kubevirt/kinds.ts';
import { KEYS_FILE, machineSpec, SSH_PORT } from '../../../kube/kubevirt/machine.ts';
import { COMMON_LABELS, metadataFor, ownedName } from '../manifests.ts';

export type MachinePoolSettings = NonNullable<SandboxPoolSpec['virtualMachineInstance']>;

/** The pods that may speak SSH to machines. */
export interface OperatorPods {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
}

export const keysName = (pool: SandboxPool): string =>
  labelValue(`${ownedName(pool)}-ssh-pubkeys`).toLowerCase();

/** The public key that every machine of the pool lets in. */
export function keysFor(pool: SandboxPool, publicKey: string): Secret {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...metadataFor(pool), name: keysName(pool) },
    type: 'Opaque',
    data: { [KEYS_FILE]: Buffer.from(`${publicKey}\n`).toString('base64') },
  };
}

/** Keeps so many machines standing by: a claimed one no longer matches and is replaced. */
export function machineSetFor(
  pool: SandboxPool,
  settings: MachinePoolSettings,
  { publicKey, replicas }: { readonly publicKey: string; readonly replicas: number },
): VirtualMachineInstanceReplicaSet {
  const labels = standbyLabels(pool.metadata.name ?? '');
  const spec = machineSpec(settings, keysName(pool));
  const { user, privateKeySecretRef } = settings.ssh;
  const terms = {
    [ANNOTATIONS.sshUser]: user,
    [ANNOTATIONS.sshKey]: `${privateKeySecretRef.name}/${privateKeySecretRef.key}`,
  };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceReplicaSet',
    metadata: metadataFor(pool),
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: {
          labels: { ...labels, ...COMMON_LABELS },
          // A machine carries its terms, so that neither a claim nor a login need read the pool.
          annotations: {
            [ANNOTATIONS.maxActive]: pool.spec.maxActive,
            ...(pool.spec.egressProbe.enabled ? {} : { [ANNOTATIONS.egressProbe]: PROBE_DISABLED }),
            ...terms,
            [ANNOTATIONS.template]: digest({ spec, terms, publicKey }),
          },
        },
        spec,
      },
    },
  };
}

/**
 * A machine as the pool's others are, that belongs to a run from its beginning and waits for its own proof. Undefined
 * for a pool of another backend.
 */
export function machineForRun(pool: SandboxPool): VirtualMachineInstance | undefined {
  const settings = pool.spec.virtualMachineInstance;
  if (settings === undefined) return undefined;
  const { metadata, spec } = machineSetFor(pool, settings, { publicKey: '', replicas: 0 }).spec.template;
  // It never stands by, so nobody asks whether it is outdated.
  const { [ANNOTATIONS.template]: _digest, ...annotations } = metadata?.annotations ?? {};
  const proof = pool.spec.egressProbe.enabled ? { [ANNOTATIONS.egressProbe]: PROBE_AWAITED } : {};
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { ...metadata, annotations: { ...annotations, ...proof } },
    spec,
  };
}

/** Nothing out, and nothing in but SSH from the operator: the launcher pods carry their machines' labels. */
export function machinePolicyFor(pool: SandboxPool, operator: OperatorPods): NetworkPolicy {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: metadataFor(pool),
    spec: {
      podSelector: { matchLabels: { [LABELS.pool]: labelValue(pool.metadata.name ?? '') } },
      policyTypes: ['Egress', 'Ingress'],
      egress: [],
      ingress: [
        {
          from: [
            {
              namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': operator.namespace } },
              podSelector: { matchLabels: operator.labels },
            },
          ],
          ports: [{ protocol: 'TCP', port: SSH_PORT }],
        },
      ],
    },
  };
}

/** KubeVirt replaces no machine when its template changes: this tells the old ones. */
const digest = (template: object): string =>
  createHash('sha256').update(JSON.stringify(template)).digest('hex').slice(0, 16);

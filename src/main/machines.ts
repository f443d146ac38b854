import type { OperatorParts } from '../cli/operator.ts';
import { type Probeable, probeableMachine } from '../controllers/pool/egress/probeable.ts';
import { machineForRun, type OperatorPods } from '../controllers/pool/machines/manifests.ts';
import { labelValue } from '../crds/labels.ts';
import { LABELS } from '../crds/meta.ts';
import { SANDBOX_POOLS, type SandboxPool, type SandboxPoolSpec } from '../crds/sandbox-pool.ts';
import { sleep, systemClock } from '../kube/clock.ts';
import { isKubeError } from '../kube/errors.ts';
import type { Informer } from '../kube/informer.ts';
import { VIRTUAL_MACHINE_INSTANCE, type VirtualMachineInstance } from '../kube/kubevirt/kinds.ts';
import { errorFields, type Logger } from '../kube/log.ts';
import type { KubeClient } from '../kube/port.ts';
import type { ClaimMetrics } from '../sandbox/pool/metrics.ts';
import { type MachinePool, machinePool } from '../sandbox/pool/vmi-pool.ts';
import type { SandboxRequest } from '../sandbox/port.ts';

export interface MachinesParts {
  readonly kube: KubeClient;
  readonly pools: Informer<SandboxPool>;
  /** Where the pools and their machines are. */
  readonly namespace: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly tempDir: string;
  /** Told of every line of a private key. */
  readonly onSecret: (value: string) => void;
  readonly metrics: ClaimMetrics;
  readonly log: Logger;
}

export interface Machines {
  readonly pool: MachinePool;
  /** Of the pool, as last seen while this replica leads. */
  of(pool: SandboxPool): readonly Probeable[];
  backendOf(pool: SandboxRequest['pool']): Promise<SandboxPoolSpec['backend'] | undefined>;
  /** To be run by the leader. */
  readonly loop: OperatorParts['loops'][number];
}

/** How config/manager labels the operator's pods: a pool's NetworkPolicy lets them in, and nobody else. */
export const operatorPods = (namespace: string): OperatorPods => ({
  namespace,
  labels: { 'app.kubernetes.io/name': 'hummingbird-operator' },
});

const LOOK_EVERY_MS = 2_000;

/**
 * Machines of pools. They are listed, not watched: few clusters have KubeVirt, those that have may get it after the
 * operator, and a machine takes longer to boot than it takes to be seen.
 */
export function joinMachines(parts: MachinesParts): Machines {
  const { kube, pools, namespace, env, tempDir, onSecret, log } = parts;
  const pool = machinePool({
    ...{ kube, logger: log, env, tempDir, onSecret, metrics: parts.metrics },
    machineOf: machineForRun,
  });
  let known: readonly VirtualMachineInstance[] = [];

  async function look(signal: AbortSignal): Promise<void> {
    const wanted = pools.list(({ spec }) => spec.backend === 'VirtualMachineInstance').length > 0;
    known = wanted ? await list(kube, namespace, signal) : [];
    await pool.forget(new Set(known.map(({ metadata }) => metadata.uid ?? '')));
  }

  return {
    pool,
    of: ({ metadata }) =>
      known
        .filter((machine) => machine.metadata.labels?.[LABELS.pool] === labelValue(metadata.name ?? ''))
        .map(probeableMachine),
    async backendOf(ref) {
      const seen = pools.get(`${ref.namespace}/${ref.name}`) ?? (await kube.get(SANDBOX_POOLS, ref));
      return seen?.spec.backend;
    },
    loop: {
      name: 'machines',
      async run(signal) {
        while (!signal.aborted) {
          await look(signal).catch((error: unknown) => {
            if (!signal.aborted) log.warn(errorFields(error), 'machines not listed; trying again');
          });
          await sleep(systemClock, LOOK_EVERY_MS, signal);
        }
      },
    },
  };
}

async function list(
  kube: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<readonly VirtualMachineInstance[]> {
  try {
    const query = { namespace, labelSelector: LABELS.pool };
    return (await kube.list(VIRTUAL_MACHINE_INSTANCE, query, { signal })).items;
  } catch (error) {
    // The pool's condition says so.
    if (isKubeError(error, 'NotFound')) return [];
    throw error;
  }
}

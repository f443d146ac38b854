import { METADATA_SERVICES } from '../../crds/sandbox-pool.ts';
import { type Clock, sleep } from '../../kube/clock.ts';
import {
  type ProbePlan,
  type ProbeResult,
  type ProbeTarget,
  type Sandbox,
  SandboxUnavailableError,
} from '../port.ts';
import { probeEgress } from './probe.ts';

export interface ProofOptions {
  readonly clock: Clock;
  /** Told what is still open, whenever that changes. */
  readonly onOpen?: (what: string) => void;
  readonly probe?: (
    sandbox: Pick<Sandbox, 'exec'>,
    plan: ProbePlan,
    signal?: AbortSignal,
  ) => Promise<ProbeResult>;
}

/** A pod can be up some seconds before its NetworkPolicy is enforced; on a busy node it takes longer. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 500;
/** Three rounds over 5 s, as for the sandboxes of a pool. */
const PROOF = { rounds: 3, gapMs: 2_500 };

/** What is tried on a node of which only this is known; the sandbox's own environment may name an API server too. */
export function targetsOn(
  nodeAddress: string | undefined,
  apiServer: { readonly address: string; readonly port: number } | undefined,
): readonly ProbeTarget[] {
  const node =
    nodeAddress === undefined
      ? []
      : [
          { name: 'Kubelet' as const, address: nodeAddress, port: 10250, udp: false },
          { name: 'Dns' as const, address: nodeAddress, port: 53, udp: true },
        ];
  const server = apiServer === undefined ? [] : [{ name: 'ApiServer' as const, ...apiServer, udp: false }];
  const metadata = METADATA_SERVICES.map((one) => ({ name: 'Metadata' as const, ...one, udp: false }));
  return [...server, ...node, ...metadata];
}

/**
 * Resolves when the sandbox was shown to reach nothing, three times over 5 s. Rejects with
 * `SandboxUnavailableError` when that does not become true within a minute, or as `exec` does.
 */
export async function proveIsolated(
  sandbox: Pick<Sandbox, 'exec' | 'ref'>,
  targets: readonly ProbeTarget[],
  options: ProofOptions,
  signal?: AbortSignal,
): Promise<void> {
  const { clock, onOpen, probe = probeEgress } = options;
  const begun = clock.monotonicMs();
  let said = '';
  for (;;) {
    // One round tells quickly that it is too early for three.
    const open =
      openOf(await probe(sandbox, { targets, rounds: 1, gapMs: 0 }, signal), sandbox) ??
      openOf(await probe(sandbox, { targets, ...PROOF }, signal), sandbox);
    if (open === undefined) return;
    if (clock.monotonicMs() - begun >= PATIENCE_MS)
      throw unavailable(sandbox, `is not isolated: ${open}; see that the cluster enforces NetworkPolicies`);
    if (open !== said) onOpen?.(open);
    said = open;
    await sleep(clock, PAUSE_MS, signal);
    signal?.throwIfAborted();
  }
}

function openOf(result: ProbeResult, sandbox: Pick<Sandbox, 'ref'>): string | undefined {
  if (result.kind === 'CannotProbe') throw unavailable(sandbox, `cannot be probed: ${result.why}`);
  const finding = result.rounds.flat().find(({ open }) => open);
  return finding && `${finding.subject} ${finding.where}: ${finding.detail}`;
}

const unavailable = ({ ref: { namespace, name } }: Pick<Sandbox, 'ref'>, why: string) =>
  new SandboxUnavailableError(`sandbox ${namespace}/${name} ${why}`);

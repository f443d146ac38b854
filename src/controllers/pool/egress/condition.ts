import type { Condition } from '../../../crds/meta.ts';
import type { SandboxPool } from '../../../crds/sandbox-pool.ts';
import type { ProbeFinding } from '../../../sandbox/port.ts';
import type { Ledger } from './ledger.ts';
import { inWords } from './words.ts';

/** What the probe says of a pool now. */
export type EgressReport =
  | { readonly kind: 'Open'; readonly sandbox: string; readonly finding: ProbeFinding }
  | { readonly kind: 'CannotProbe'; readonly why: string }
  /** The last proof is recent, even when every sandbox that was proven is claimed by now. */
  | { readonly kind: 'Blocked' }
  | { readonly kind: 'Probing' };

/** A pod that is new may be open for some seconds; so long nobody is told. */
const NEW_POD_MS = 8_000;
const RECENT_MS = 5 * 60_000;

/** Pure. `names` of sandboxes by uid. */
export function reportOf(ledger: Ledger, names: ReadonlyMap<string, string>, ms: number): EgressReport {
  if (ledger.breach !== undefined) return { kind: 'Open', ...ledger.breach };
  const recently = ledger.provenAtMs !== undefined && ms - ledger.provenAtMs < RECENT_MS;
  const probes = [...ledger.last];
  if (probes.some(([, { kind }]) => kind === 'Blocked')) return { kind: 'Blocked' };
  for (const [uid, probe] of probes) {
    if (probe.kind === 'Open' && probe.endedMs - probe.sinceMs >= NEW_POD_MS)
      return { kind: 'Open', sandbox: names.get(uid) ?? uid, finding: probe.finding };
  }
  if (recently) return { kind: 'Blocked' };
  for (const [, probe] of probes)
    if (probe.kind === 'CannotProbe') return { kind: 'CannotProbe', why: probe.why };
  return { kind: 'Probing' };
}

type Said = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/** `proven`: standby sandboxes that carry a proof; with one of them the word of an earlier leader counts too. */
export function egressCondition(pool: SandboxPool, report: EgressReport | undefined, proven: number): Said {
  const type = 'EgressBlocked';
  if (!pool.spec.egressProbe.enabled) {
    return {
      type,
      status: 'Unknown',
      reason: 'ProbeDisabled',
      message: 'spec.egressProbe.enabled is false: the cluster is trusted to enforce the NetworkPolicy',
    };
  }
  switch (report?.kind) {
    case 'Open':
      return {
        type,
        status: 'False',
        reason: 'EgressOpen',
        message: `sandbox ${report.sandbox} is not isolated: ${inWords(report.finding)}; no sandbox is handed out`,
      };
    case 'CannotProbe':
      return proven > 0
        ? blocked(type)
        : {
            type,
            status: 'Unknown',
            reason: 'CannotProbe',
            message: `no sandbox can be proven: ${report.why}`,
          };
    case 'Blocked':
      return blocked(type);
    default:
      return proven > 0
        ? blocked(type)
        : { type, status: 'Unknown', reason: 'Probing', message: 'no sandbox has been proven yet' };
  }
}

const blocked = (type: string): Said => ({
  type,
  status: 'True',
  reason: 'Proven',
  message: 'Sandboxes were shown from inside to reach no network and to hold no credential',
});

import { type Clock, sleep } from '../clock.ts';
import type { Informer } from '../informer.ts';
import type { Lease } from '../kinds.ts';
import { errorFields, type Logger } from '../log.ts';
import { REPLICA_LABEL } from './record.ts';

export interface OthersOptions {
  /** Of all replicas' Leases. */
  readonly informer: Informer<Lease>;
  /** This replica. */
  readonly self: string;
  /** Reads the Lease of a replica from the API server. Throws KubeError. */
  readonly read: (replica: string) => Promise<Lease | undefined>;
  readonly leaseDurationMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What this replica knows of the others. */
export interface Others {
  /** From what was heard: errs on the side of alive, and may be late. */
  isAlive(replica: string, incarnation?: number): boolean;
  /** From the API server, when what was heard says dead. Throws KubeError. */
  isGone(replica: string, incarnation: number): Promise<boolean>;
  /** Those whose Lease was not renewed for so long. */
  silentFor(ms: number): readonly Lease[];
  onChange(handler: () => void): () => void;
  /** Looks for those that went without a word until `signal` is aborted: a Lease that expires makes no event. */
  watch(signal: AbortSignal): Promise<void>;
}

interface Observed {
  readonly lease: Lease;
  /** When it was last seen to change, by our clock. */
  readonly atMs: number;
  /** When this start of the replica was first seen. */
  readonly sinceMs: number;
}

/** How often is looked for Leases that have expired. */
const LOOK_MS = 1_000;
/** One answer serves all runs of a replica. */
const SHARED_MS = 1_000;
/** A replica that has been started again takes up its runs by itself, within this; then they are anybody's. */
const RETURN_MS = 10_000;

export function observeOthers(options: OthersOptions): Others {
  const { informer, self, leaseDurationMs, clock, logger } = options;
  const observed = new Map<string, Observed>();
  const handlers = new Set<() => void>();
  const reads = new Map<string, { readonly atMs: number; readonly lease: Promise<Lease | undefined> }>();
  let aliveBefore = '';

  informer.subscribe((change) => {
    const id = change.object.metadata.labels?.[REPLICA_LABEL];
    if (id === undefined || change.type === 'Resync') return;
    const before = observed.get(id)?.lease.spec;
    if (change.type === 'Deleted') observed.delete(id);
    else note(id, change.object);
    const after = observed.get(id)?.lease.spec;
    const news =
      before?.holderIdentity !== after?.holderIdentity ||
      before?.leaseTransitions !== after?.leaseTransitions;
    if (news) tell();
  });

  function note(id: string, lease: Lease): void {
    const atMs = clock.monotonicMs();
    const before = observed.get(id);
    const same = before?.lease.spec?.leaseTransitions === lease.spec?.leaseTransitions;
    observed.set(id, { lease, atMs, sinceMs: same ? (before?.sinceMs ?? atMs) : atMs });
  }

  function tell(): void {
    for (const handler of handlers) {
      try {
        handler();
      } catch (error) {
        logger.error(errorFields(error), 'a handler of replica changes failed');
      }
    }
  }

  function isAlive(id: string, incarnation?: number): boolean {
    const known = observed.get(id);
    if (known === undefined || known.lease.spec?.holderIdentity !== id) return false;
    if (incarnation !== undefined && known.lease.spec.leaseTransitions !== incarnation) return false;
    const durationMs = (known.lease.spec.leaseDurationSeconds ?? leaseDurationMs / 1000) * 1000;
    return silenceMs(known) <= durationMs;
  }

  /** Silence counts only as far as the API server was heard: our own lost connection kills nobody. */
  function silenceMs({ atMs }: Observed): number {
    return clock.monotonicMs() - informer.stalenessMs() - atMs;
  }

  /**
   * What was heard may be old: a watch that lags behind, on a server with too much to do, looks like silence. Only
   * the API server's own answer shows that a Lease was not renewed meanwhile.
   */
  async function isGone(id: string, incarnation: number): Promise<boolean> {
    if (isAlive(id, incarnation)) return false;
    const found = await readShared(id);
    if (found === undefined) return true;
    const { holderIdentity, leaseTransitions = 0 } = found.spec ?? {};
    if (holderIdentity !== id) return true;
    if (observed.get(id)?.lease.metadata.resourceVersion !== found.metadata.resourceVersion) note(id, found);
    if (isAlive(id, incarnation)) return false;
    const known = observed.get(id);
    const returning = leaseTransitions > incarnation && isAlive(id) && known !== undefined;
    return !(returning && clock.monotonicMs() - known.sinceMs < RETURN_MS);
  }

  function readShared(id: string): Promise<Lease | undefined> {
    const nowMs = clock.monotonicMs();
    const known = reads.get(id);
    if (known !== undefined && nowMs - known.atMs < SHARED_MS) return known.lease;
    const lease = options.read(id);
    reads.set(id, { atMs: nowMs, lease });
    // A failure is nobody's answer.
    lease.catch(() => reads.delete(id));
    return lease;
  }

  return {
    isAlive,
    isGone,
    silentFor: (ms) =>
      [...observed].flatMap(([id, known]) => (id !== self && silenceMs(known) >= ms ? [known.lease] : [])),
    onChange(handler) {
      handlers.add(handler);
      return () => {
        handlers.delete(handler);
      };
    },
    async watch(signal) {
      while (!signal.aborted) {
        const alive = [...observed.keys()].filter((id) => isAlive(id)).join(' ');
        if (alive !== aliveBefore) tell();
        aliveBefore = alive;
        await sleep(clock, LOOK_MS, signal);
      }
    },
  };
}

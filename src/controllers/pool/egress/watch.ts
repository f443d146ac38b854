import type { SandboxPool } from '../../../crds/sandbox-pool.ts';
import { keyOf, refOfKey } from '../../../kube/cache.ts';
import { type Clock, sleep, systemClock } from '../../../kube/clock.ts';
import type { Source } from '../../../kube/controller.ts';
import { errorFields, type Logger, silentLogger } from '../../../kube/log.ts';
import type { ProbePlan, ProbeResult } from '../../../sandbox/port.ts';
import { actOn, type EgressActors, requireProof } from './act.ts';
import { type EgressReport, reportOf } from './condition.ts';
import {
  afterProbe,
  dueProbes,
  EMPTY_LEDGER,
  type EndedProbe,
  type Ledger,
  PROOF_GAP_MS,
  PROOF_ROUNDS,
  type ProbeKind,
  tidied,
  withoutTerms,
} from './ledger.ts';
import type { EgressMetrics } from './metrics.ts';
import { type Probeable, refOf, uidOf } from './probeable.ts';
import { type ClusterAddresses, targetsFor } from './targets.ts';

export interface EgressWatchOptions extends EgressActors {
  /** From a cache; an empty list while it has not synced. */
  readonly pools: () => readonly SandboxPool[];
  /** Of the pool, standing by or claimed, from a cache. */
  readonly sandboxes: (pool: SandboxPool) => readonly Probeable[];
  /** Runs the probe inside; rejects when that cannot be done now. */
  readonly probe: (sandbox: Probeable, plan: ProbePlan, signal: AbortSignal) => Promise<ProbeResult>;
  readonly cluster: ClusterAddresses;
  readonly metrics: EgressMetrics;
  /** Proofs at once, default 24: each is one exec of some 5 s. Watches are few and have no bound beside their pool. */
  readonly maxProofs?: number;
  readonly clock?: Clock;
  readonly logger?: Logger;
}

export interface EgressWatch {
  /** Wakes a pool whose report has changed. */
  readonly source: Source;
  /** Undefined: nothing is known of the pool yet. */
  report(pool: SandboxPool): EgressReport | undefined;
  /** Probes until the signal is aborted. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
}

const LOOK_EVERY_MS = 500;

/**
 * Probes the standby sandboxes of every pool whose probe is enabled, and keeps the marks on them true. One replica
 * does it. What it knows beside the marks is not kept: another leader proves anew what is not marked.
 */
export function createEgressWatch(options: EgressWatchOptions): EgressWatch {
  const { pools, sandboxes, metrics, maxProofs = 24, clock = systemClock, logger = silentLogger } = options;
  const ledgers = new Map<string, Ledger>();
  const reports = new Map<string, EgressReport>();
  const probing = new Map<string, Promise<void>>();
  const listeners = new Set<(key: string) => void>();
  let proofs = 0;

  const moment = () => ({ now: clock.now(), ms: clock.monotonicMs() });
  const ledgerOf = (pool: SandboxPool) => ledgers.get(keyOf(pool)) ?? EMPTY_LEDGER;

  function tell(pool: SandboxPool): void {
    const key = keyOf(pool);
    const names = new Map(sandboxes(pool).map((sandbox) => [uidOf(sandbox), refOf(sandbox).name]));
    const report = reportOf(ledgerOf(pool), names, clock.monotonicMs());
    const before = reports.get(key);
    reports.set(key, report);
    metrics.blocked(refOfPool(pool), report.kind === 'Blocked');
    if (JSON.stringify(before) === JSON.stringify(report)) return;
    if (before?.kind === 'Open' && report.kind === 'Blocked')
      options.events.record(pool, 'Normal', 'EgressBlocked', 'sandboxes are isolated again');
    for (const listener of listeners) listener(key);
  }

  async function once(
    kind: ProbeKind,
    pool: SandboxPool,
    sandbox: Probeable,
    signal: AbortSignal,
  ): Promise<void> {
    const startedMs = clock.monotonicMs();
    const others = sandboxes(pool);
    const plan: ProbePlan = {
      targets: targetsFor(sandbox, pool, others, options.cluster),
      rounds: kind === 'Proof' ? PROOF_ROUNDS : 1,
      gapMs: PROOF_GAP_MS,
    };
    const result = await options.probe(sandbox, plan, signal).catch((error: unknown): ProbeResult => {
      if (!signal.aborted) logger.info({ ...refOf(sandbox), ...errorFields(error) }, 'sandbox not probed');
      return { kind: 'CannotProbe', why: error instanceof Error ? error.message : String(error) };
    });
    if (signal.aborted) return;
    metrics.probed(refOfPool(pool), result);
    await learn(pool, { kind, sandbox, startedMs, result });
  }

  async function learn(pool: SandboxPool, ended: EndedProbe): Promise<void> {
    const found = afterProbe(ledgerOf(pool), ended, { pool, sandboxes: sandboxes(pool), moment: moment() });
    ledgers.set(keyOf(pool), found.ledger);
    // The marks first: what the condition says about handing out is true once it says so.
    const done = await Promise.allSettled(
      found.actions.map((action) => actOn(options, pool, action, clock.now())),
    );
    for (const each of done)
      if (each.status === 'rejected')
        logger.warn(
          { ...refOf(ended.sandbox), ...errorFields(each.reason) },
          'mark of a sandbox not written',
        );
    tell(pool);
  }

  function start(kind: ProbeKind, pool: SandboxPool, sandbox: Probeable, signal: AbortSignal): void {
    const uid = uidOf(sandbox);
    if (kind === 'Proof' && proofs >= maxProofs) return;
    if (kind === 'Proof') proofs += 1;
    const probe = once(kind, pool, sandbox, signal).finally(() => {
      if (kind === 'Proof') proofs -= 1;
      probing.delete(uid);
    });
    probing.set(uid, probe);
  }

  function look(signal: AbortSignal): void {
    const present = new Set<string>();
    for (const pool of pools()) {
      if (!pool.spec.egressProbe.enabled || pool.metadata.deletionTimestamp !== undefined) continue;
      const key = keyOf(pool);
      present.add(key);
      const all = sandboxes(pool);
      for (const sandbox of withoutTerms(all))
        requireProof(options.kube, sandbox).catch((error: unknown) =>
          logger.warn({ ...refOf(sandbox), ...errorFields(error) }, 'sandbox still stands by without proof'),
        );
      const ledger = tidied(ledgerOf(pool), all);
      const idle = all.filter((sandbox) => !probing.has(uidOf(sandbox)));
      const { proofs: unproven, watches } = dueProbes(ledger, pool, idle, moment());
      ledgers.set(key, watches.length > 0 ? { ...ledger, lastWatchMs: clock.monotonicMs() } : ledger);
      for (const sandbox of watches) start('Watch', pool, sandbox, signal);
      for (const sandbox of unproven) start('Proof', pool, sandbox, signal);
      tell(pool);
    }
    for (const key of [...reports.keys()].filter((known) => !present.has(known))) {
      ledgers.delete(key);
      reports.delete(key);
      metrics.blocked(refOfKey(key), undefined);
    }
  }

  return {
    source: {
      subscribe(enqueue) {
        listeners.add(enqueue);
        return () => void listeners.delete(enqueue);
      },
      waitForSync: () => Promise.resolve(),
    },
    report: (pool) => reports.get(keyOf(pool)),
    async run(signal) {
      while (!signal.aborted) {
        look(signal);
        await sleep(clock, LOOK_EVERY_MS, signal);
      }
      await Promise.allSettled(probing.values());
    },
  };
}

const refOfPool = ({ metadata: { namespace = '', name = '' } }: SandboxPool) => ({ namespace, name });

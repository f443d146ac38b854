import { Counter, Histogram, type Registry } from 'prom-client';
import type { ObjectRef } from '../../kube/port.ts';

export interface ClaimMetrics {
  /** Warm: one that stood by. Reclaimed: it lingered for the session. Created: made for the run, as none stood by. */
  claimed(pool: ObjectRef, how: 'Warm' | 'Reclaimed' | 'Created', waitedSeconds: number): void;
}

/** A warm one takes milliseconds, a fresh one seconds, a full pool minutes. */
const WAIT_BUCKETS = [0.05, 0.25, 1, 5, 15, 60, 300, 900];

export function claimMetrics(registry: Registry): ClaimMetrics {
  const registers = [registry];
  const claims = new Counter({
    name: 'hummingbird_sandbox_claims_total',
    help: 'Sandboxes that runs got, by pool and how: Warm, Reclaimed, Created.',
    labelNames: ['pool', 'how'],
    registers,
  });
  const waits = new Histogram({
    name: 'hummingbird_sandbox_wait_seconds',
    help: 'Time from a run asking for a sandbox to having one, by pool.',
    labelNames: ['pool'],
    buckets: WAIT_BUCKETS,
    registers,
  });
  return {
    claimed({ namespace = '', name }, how, waitedSeconds) {
      const pool = `${namespace}/${name}`;
      claims.inc({ pool, how });
      waits.observe({ pool }, waitedSeconds);
    },
  };
}

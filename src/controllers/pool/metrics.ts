import { Counter, Gauge, type Registry } from 'prom-client';
import type { SandboxPoolStatus } from '../../crds/sandbox-pool.ts';
import type { ObjectRef } from '../../kube/port.ts';

export interface PoolMetrics {
  /** Undefined: the pool is gone. */
  counted(pool: ObjectRef, status: SandboxPoolStatus | undefined): void;
  /** A claimed or lingering sandbox was deleted by the reaper, or to make room for another. */
  reaped(pool: ObjectRef, reason: string): void;
  /** A sandbox that stood by ended by itself. */
  broke(pool: ObjectRef, reason: string): void;
}

const STATES = ['ready', 'claimed', 'lingering'] as const;

export function poolMetrics(registry: Registry): PoolMetrics {
  const registers = [registry];
  const sandboxes = new Gauge({
    name: 'hummingbird_sandboxes',
    help: 'Sandboxes of a pool, by state: standby (ready or not), ready, claimed, lingering.',
    labelNames: ['pool', 'state'],
    registers,
  });
  const reaped = new Counter({
    name: 'hummingbird_sandboxes_reaped_total',
    help: 'Claimed and lingering sandboxes that the operator deleted by itself, by pool and reason.',
    labelNames: ['pool', 'reason'],
    registers,
  });
  const broken = new Counter({
    name: 'hummingbird_sandboxes_broken_total',
    help: 'Standby sandboxes that ended by themselves, by pool and reason.',
    labelNames: ['pool', 'reason'],
    registers,
  });
  return {
    counted(ref, status) {
      const pool = nameOf(ref);
      if (status === undefined) {
        for (const state of ['standby', ...STATES]) sandboxes.remove({ pool, state });
        return;
      }
      sandboxes.set({ pool, state: 'standby' }, status.replicas ?? 0);
      for (const state of STATES) sandboxes.set({ pool, state }, status[state] ?? 0);
    },
    reaped: (pool, reason) => reaped.inc({ pool: nameOf(pool), reason }),
    broke: (pool, reason) => broken.inc({ pool: nameOf(pool), reason }),
  };
}

const nameOf = ({ namespace = '', name }: ObjectRef): string => `${namespace}/${name}`;

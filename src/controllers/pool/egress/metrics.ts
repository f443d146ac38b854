import { Counter, Gauge, type Registry } from 'prom-client';
import type { ObjectRef } from '../../../kube/port.ts';
import type { ProbeResult } from '../../../sandbox/port.ts';

export interface EgressMetrics {
  probed(pool: ObjectRef, result: ProbeResult): void;
  /** Undefined: the pool is gone, or has no probe. */
  blocked(pool: ObjectRef, blocked: boolean | undefined): void;
}

export function egressMetrics(registry: Registry): EgressMetrics {
  const registers = [registry];
  const probes = new Counter({
    name: 'hummingbird_egress_probes_total',
    help: 'Probes of standby sandboxes, by pool, what was tried, and result: blocked, open, failed.',
    labelNames: ['pool', 'subject', 'result'],
    registers,
  });
  const blocked = new Gauge({
    name: 'hummingbird_egress_blocked',
    help: 'Whether the condition EgressBlocked of a pool is True.',
    labelNames: ['pool'],
    registers,
  });
  return {
    probed(pool, result) {
      if (result.kind === 'CannotProbe') {
        probes.inc({ pool: nameOf(pool), subject: 'All', result: 'failed' });
        return;
      }
      const open = new Map<string, boolean>();
      for (const finding of result.rounds.flat())
        open.set(finding.subject, finding.open || open.get(finding.subject) === true);
      for (const [subject, isOpen] of open)
        probes.inc({ pool: nameOf(pool), subject, result: isOpen ? 'open' : 'blocked' });
    },
    blocked(pool, value) {
      if (value === undefined) blocked.remove({ pool: nameOf(pool) });
      else blocked.set({ pool: nameOf(pool) }, value ? 1 : 0);
    },
  };
}

const nameOf = ({ namespace = '', name }: ObjectRef): string => `${namespace}/${name}`;

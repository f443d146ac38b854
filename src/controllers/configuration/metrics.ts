import { Counter, Gauge, type Registry } from 'prom-client';

export interface ConfigurationMetrics {
  /** Another state of the file was seen: its workflows were applied, it is faulty, or the API server refused some. */
  reloaded(outcome: 'applied' | 'faulty' | 'failed'): void;
  /** Faults of the file as it stands. */
  faults(count: number): void;
  /** Workflows of the file whose name one has that was not made from it. */
  leftAlone(count: number): void;
}

export function configurationMetrics(
  registry: Registry,
  nowMs: () => number = Date.now,
): ConfigurationMetrics {
  const registers = [registry];
  const reloads = new Counter({
    name: 'hummingbird_config_reloads_total',
    help: 'States of the configuration file that the leader has seen, by what became of them: applied, faulty, failed.',
    labelNames: ['outcome'],
    registers,
  });
  const success = new Gauge({
    name: 'hummingbird_config_reload_success_timestamp_seconds',
    help: 'When a state of the configuration file was applied last, in seconds since 1970; 0: not by this process.',
    registers,
  });
  const faults = new Gauge({
    name: 'hummingbird_config_reload_faults',
    help: 'Faults of the configuration file as it stands; while there are any, its workflows stay as they were.',
    registers,
  });
  const leftAlone = new Gauge({
    name: 'hummingbird_config_reload_left_alone',
    help: 'Workflows of the configuration file whose name a workflow has that was not made from it.',
    registers,
  });
  return {
    reloaded(outcome) {
      reloads.inc({ outcome });
      if (outcome === 'applied') success.set(nowMs() / 1000);
    },
    faults: (count) => faults.set(count),
    leftAlone: (count) => leftAlone.set(count),
  };
}

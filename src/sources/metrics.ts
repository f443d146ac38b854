import { Counter, type Registry } from 'prom-client';

/** How a call of a source's tool ended. */
export type CallOutcome =
  | 'Ok'
  /** What came is not all; the model was told what is missing. */
  | 'Partial'
  /** Refused, or not to be had; the model was told why. */
  | 'Error';

export interface SourceMetrics {
  called(tool: string, outcome: CallOutcome): void;
}

export function sourceMetrics(registry: Registry): SourceMetrics {
  const calls = new Counter({
    name: 'hummingbird_source_calls_total',
    help: 'Calls of the tools of data sources, by tool and outcome: Ok, Partial, Error.',
    labelNames: ['tool', 'outcome'],
    registers: [registry],
  });
  return { called: (tool, outcome) => calls.inc({ tool, outcome }) };
}

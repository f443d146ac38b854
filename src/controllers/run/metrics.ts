import { Counter, Histogram, type Registry } from 'prom-client';
import type { RunMetrics } from './deps.ts';

/** Upper bounds in seconds: steps take milliseconds, runs take minutes. */
const STEP_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60];
const RUN_BUCKETS = [1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600];

export function runMetrics(registry: Registry): RunMetrics {
  const registers = [registry];
  const ended = new Counter({
    name: 'hummingbird_runs_ended_total',
    help: 'AgentRuns that reached a terminal phase, by workflow and reason.',
    labelNames: ['workflow', 'reason'],
    registers,
  });
  const seconds = new Histogram({
    name: 'hummingbird_run_duration_seconds',
    help: 'Time from taking a run up to its terminal phase, by workflow.',
    labelNames: ['workflow'],
    buckets: RUN_BUCKETS,
    registers,
  });
  const cost = new Counter({
    name: 'hummingbird_run_cost_usd_total',
    help: 'US dollars that model calls of ended runs cost, where the price is known.',
    labelNames: ['workflow', 'model'],
    registers,
  });
  const tokens = new Counter({
    name: 'hummingbird_run_tokens_total',
    help: 'Tokens of ended runs, by workflow and direction: input, output, cacheRead, cacheWrite.',
    labelNames: ['workflow', 'direction'],
    registers,
  });
  const steps = new Histogram({
    name: 'hummingbird_run_step_seconds',
    help: 'Time of one step of a run, by step.',
    labelNames: ['step'],
    buckets: STEP_BUCKETS,
    registers,
  });
  const approvals = new Counter({
    name: 'hummingbird_run_approvals_total',
    help: 'Calls that waited for approval, by workflow and how it ended: Approved, Denied, Expired.',
    labelNames: ['workflow', 'state'],
    registers,
  });
  const delivered = new Counter({
    name: 'hummingbird_deliveries_total',
    help: 'Runs on chart bumps that ended by their own judgement, by workflow and outcome: NoAction, Explained, Push, Escalate, Left.',
    labelNames: ['workflow', 'outcome'],
    registers,
  });
  return {
    delivered: (workflow, outcome) => delivered.inc({ workflow, outcome }),
    approval: (workflow, state) => approvals.inc({ workflow, state }),
    step: (step, took) => steps.observe({ step }, took),
    ended({ spec, status }, reason, tookSeconds) {
      const workflow = spec.workflowRef.name;
      ended.inc({ workflow, reason });
      if (tookSeconds !== undefined) seconds.observe({ workflow }, tookSeconds);
      if (status?.costUSD !== undefined)
        cost.inc({ workflow, model: status.model ?? '' }, Number(status.costUSD));
      for (const [direction, count] of Object.entries(status?.usage ?? {}))
        tokens.inc({ workflow, direction }, count);
    },
  };
}

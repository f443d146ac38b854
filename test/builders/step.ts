import { pino } from 'pino';
import type { RunDeps } from '../../src/controllers/run/deps.ts';
import { effectiveRun } from '../../src/controllers/run/effective.ts';
import { emptyLocalState } from '../../src/controllers/run/local.ts';
import type { StepContext } from '../../src/controllers/run/step.ts';
import type { AgentRun } from '../../src/crds/agent-run.ts';
import type { AgentWorkflow } from '../../src/crds/agent-workflow.ts';
import { ManualClock } from '../../src/kube/clock.ts';

/** What a step of a run told. */
export interface StepWorld {
  readonly context: StepContext;
  readonly clock: ManualClock;
  /** Reasons of the Events, in order. */
  readonly events: readonly string[];
  /** The same world with the run as a step's result left it. */
  after(run: AgentRun): StepContext;
}

/** A step's surroundings: what the test does not give refuses to be used. */
export function aStep(run: AgentRun, deps: Partial<RunDeps> = {}, workflow?: AgentWorkflow): StepWorld {
  const clock = new ManualClock(new Date('2026-03-01T12:00:00Z'));
  const events: string[] = [];
  const given: Partial<RunDeps> = {
    clock,
    log: pino({ level: 'silent' }),
    events: { record: (_, __, reason) => void events.push(reason), flush: async () => undefined },
    holderName: 'operator-0/1',
    redact: (text) => text,
    toolServers: { open: async () => ({ tools: [], problems: [], close: async () => undefined }) },
    commandPrefix: '/hummingbird',
    ...deps,
  };
  const complete = new Proxy(given, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (value === undefined) throw new Error(`this test gives no ${String(name)}`);
      return value;
    },
  }) as RunDeps; // whatever is missing throws, see above
  const local = emptyLocalState();
  const contextOf = (current: AgentRun): StepContext => ({
    deps: complete,
    local,
    run: current,
    workflow,
    effective: effectiveRun(current, workflow),
    signal: new AbortController().signal,
    wake: () => undefined,
  });
  return { context: contextOf(run), clock, events, after: contextOf };
}

import { sleep } from '../../../kube/clock.ts';
import type { Sandbox } from '../../../sandbox/port.ts';
import type { StepContext } from '../step.ts';
import { requestOf } from './sandbox.ts';

/** A sandbox that was lost on the way becomes a fresh one, not a lost run. */
export async function anotherSandbox(
  context: StepContext,
  signal: AbortSignal,
): Promise<Sandbox | undefined> {
  const { deps, run, local, effective } = context;
  const { pool } = effective;
  if (pool === undefined) return undefined;
  deps.events.record(
    run,
    'Warning',
    'SandboxLost',
    'The sandbox went away during the run; claiming another one',
  );
  for (;;) {
    signal.throwIfAborted();
    const claimed = await deps.sandboxes.claim(requestOf(context, pool), signal);
    if (claimed.kind === 'Unavailable') return undefined;
    if (claimed.kind === 'Claimed') {
      await claimed.sandbox.start(signal);
      local.sandboxes.set(run.metadata.uid ?? '', claimed.sandbox);
      return claimed.sandbox;
    }
    await sleep(deps.clock, 500, signal);
  }
}

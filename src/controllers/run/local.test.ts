import { describe, expect, it } from 'vitest';
import { Execution } from './execution.ts';
import { emptyLocalState, seen, stopAll } from './local.ts';

const ref = { namespace: 'agents', name: 'run-1' };
const working = () =>
  new Execution(
    (signal) =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined), { once: true })),
    () => undefined,
  );

describe('what a process holds of its runs', () => {
  it('ends the loop of a run whose object went away under it', async () => {
    const local = emptyLocalState();
    const execution = working();
    await seen(local, ref, 'uid-1');
    local.executions.set('uid-1', execution);
    local.freshIntents.set('uid-1', 0);
    await seen(local, ref, 'uid-1');
    expect(execution.state).toBe('Running');
    await seen(local, ref, undefined);
    expect(execution.state).toBe('Discarded');
    expect([local.executions.size, local.freshIntents.size, local.uids.size]).toEqual([0, 0, 0]);
  });

  it('ends it too when another object has the name now', async () => {
    const local = emptyLocalState();
    const execution = working();
    await seen(local, ref, 'uid-1');
    local.executions.set('uid-1', execution);
    await seen(local, ref, 'uid-2');
    expect(execution.state).toBe('Discarded');
    expect(local.uids.get('agents/run-1')).toBe('uid-2');
  });

  it('ends all loops at a stop, and says that none may begin', async () => {
    const local = emptyLocalState();
    const executions = [working(), working()];
    for (const [index, execution] of executions.entries()) local.executions.set(`uid-${index}`, execution);
    await stopAll(local);
    expect(executions.map(({ state }) => state)).toEqual(['Discarded', 'Discarded']);
    expect(local.stopping).toBe(true);
  });
});

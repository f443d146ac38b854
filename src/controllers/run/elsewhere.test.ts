import { describe, expect, it } from 'vitest';
import { aRun } from '../../../test/builders/run.ts';
import { aWorkflow } from '../../../test/builders/workflow.ts';
import { hasLocal, isElsewhere, type Standing } from './elsewhere.ts';
import { emptyLocalState } from './local.ts';

const SELF = 'operator-0/2';
const heldBy = (replica: string) => aRun({ phase: 'Running', holder: { replica, epoch: 1 } });
const standing = (changes: Partial<Standing> = {}): Standing => ({
  ...{ self: SELF, isLocal: false, holderAlive: false, takesRuns: true },
  ...changes,
});

describe('a run', () => {
  it.each<[string, boolean, ReturnType<typeof aRun>, Partial<Standing>]>([
    ['that another replica works on is elsewhere', true, heldBy('operator-1/1'), { holderAlive: true }],
    ['whose holder is gone is not', false, heldBy('operator-1/1'), {}],
    ['that nobody holds is not', false, aRun({}), {}],
    ['that nobody holds is left to others by a replica that is late', true, aRun({}), { takesRuns: false }],
    ['whose holder is gone is left to others too', true, heldBy('operator-1/1'), { takesRuns: false }],
    ['that this replica holds goes on, also when it is late', false, heldBy(SELF), { takesRuns: false }],
    [
      'that was taken over while its loop ran here is looked at: the loop must end',
      false,
      heldBy('operator-1/1'),
      { holderAlive: true, isLocal: true },
    ],
    [
      'that has ended is looked at by everybody, for its time to live',
      false,
      aRun({ phase: 'Succeeded', holder: { replica: 'operator-1/1', epoch: 1 } }),
      { holderAlive: true },
    ],
  ])('%s', (_, elsewhere, run, changes) => {
    expect(isElsewhere(run, standing(changes))).toBe(elsewhere);
  });
});

describe('what a process has of a run', () => {
  it('is nothing at first, and something once it was begun here', () => {
    const local = emptyLocalState();
    local.uids.set('agents/run-1', 'u-1');
    expect(hasLocal(local, 'agents/run-1', 'u-1')).toBe(false);
    local.workflows.set('u-1', aWorkflow());
    expect(hasLocal(local, 'agents/run-1', 'u-1')).toBe(true);
  });

  it('is that of the earlier object when another one has its name now', () => {
    const local = emptyLocalState();
    local.uids.set('agents/run-1', 'u-1');
    expect(hasLocal(local, 'agents/run-1', 'u-2')).toBe(true);
  });
});

import { describe, expect, it } from 'vitest';
import { aCondition, aRun } from '../../../test/builders/run.ts';
import type { AgentRunStatus } from '../../crds/agent-run.ts';
import { AWAITS_TURN, decide, type Observed } from './decide.ts';

const now = new Date('2026-03-01T12:00:00Z');
const minute = 60_000;
const startTime = new Date(now.getTime() - minute).toISOString();
const held = { phase: 'Pending', holder: { replica: 'self', epoch: 1 }, startTime } as const;
const admitted = { ...held, phase: 'Claiming', conditions: [aCondition('Admitted', 'True')] } as const;
const working = {
  ...admitted,
  note: { discussionId: 'd', noteId: 1, url: 'https://gitlab.test/n' },
} as const;
const waited = {
  ...working,
  conditions: [...working.conditions, aCondition('Succeeded', 'Unknown', AWAITS_TURN)],
};

const next = (
  status: AgentRunStatus,
  rivalry: Observed['rivalry'],
  rest: Partial<Observed> = {},
  at: Date = now,
) =>
  decide(
    {
      run: aRun(status, { spec: { trigger: { kind: 'Pipeline', eventId: '31' } } }),
      execution: { kind: 'None' },
      holdsSandbox: false,
      session: { kind: 'New' },
      rivalry,
      progress: { kind: 'Quiet' },
      self: 'self',
      holderAlive: true,
      publishesNote: true,
      usesSandbox: true,
      timeoutMs: 25 * minute,
      ttlMs: { success: minute, failure: minute },
      ...rest,
    },
    at,
  );

describe('a run that a newer one supersedes', () => {
  const superseded = { kind: 'Superseded', by: 'newer' } as const;

  it('stops its loop, and then tells what the loop ended with', () => {
    expect(next(working, superseded, { execution: { kind: 'Running', unrecorded: false } })).toEqual({
      kind: 'StopLoop',
      reason: 'Superseded',
    });
    expect(next(working, superseded, { execution: { kind: 'Finished' } })).toEqual({ kind: 'TakeResult' });
  });

  it.each([held, admitted, working])('ends at once where no loop has begun', (status) => {
    expect(next(status, superseded)).toEqual({
      kind: 'SetOutcome',
      reason: 'Superseded',
      message: 'AgentRun newer looks at a newer state of the merge request',
    });
  });

  it('reports what it had decided before', () => {
    const outcome = { reason: 'Succeeded', message: 'm', time: now.toISOString() } as const;
    expect(next({ ...working, phase: 'Finishing', outcome }, superseded)).toEqual({ kind: 'UpdateNote' });
  });
});

describe('a run that another one makes needless', () => {
  it('is skipped before it is admitted and posts nothing', () => {
    expect(next(held, { kind: 'Duplicate', of: 'first' })).toMatchObject({
      kind: 'SetOutcome',
      reason: 'SkippedDuplicate',
      message: expect.stringContaining('AgentRun first'),
    });
  });
});

describe('a run behind another one', () => {
  const behind = { kind: 'Behind', run: 'first' } as const;

  it('says that it is there, and takes no sandbox meanwhile', () => {
    expect(next(admitted, behind)).toEqual({ kind: 'PostPlaceholder' });
    expect(next(working, behind)).toEqual({ kind: 'AwaitTurn', behind: 'first' });
  });

  it('does not run out of its time while it waits', () => {
    const later = new Date(now.getTime() + 120 * minute);
    expect(next(waited, behind, {}, later)).toEqual({ kind: 'AwaitTurn', behind: 'first' });
    expect(next(waited, { kind: 'None' }, {}, later)).toEqual({ kind: 'BeginTurn' });
  });

  it('goes on when its turn has come', () => {
    const begun = {
      ...working,
      conditions: [...working.conditions, aCondition('Succeeded', 'Unknown', 'Starting')],
    };
    expect(next(begun, { kind: 'None' })).toEqual({ kind: 'ClaimSandbox' });
  });
});

describe('a reply behind another one', () => {
  const behind = (untold?: string): Partial<Observed> => ({
    session: { kind: 'Behind', run: 'first', ...(untold === undefined ? {} : { untold }) },
  });

  it('says that it is there once the one before it has', () => {
    expect(next(admitted, { kind: 'None' }, behind('second'))).toEqual({
      kind: 'AwaitTurn',
      behind: 'second',
    });
    expect(next(admitted, { kind: 'None' }, behind())).toEqual({ kind: 'PostPlaceholder' });
    expect(next(working, { kind: 'None' }, behind())).toEqual({ kind: 'AwaitTurn', behind: 'first' });
  });
});

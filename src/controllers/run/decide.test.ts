import { describe, expect, it } from 'vitest';
import { aCondition, aRun } from '../../../test/builders/run.ts';
import type { ApprovalsView } from './approvals.ts';
import {
  AWAITS_TURN,
  DELETED_REPORT_PATIENCE_MS,
  decide,
  type Observed,
  REPORT_PATIENCE_MS,
  SAVE_PATIENCE_MS,
} from './decide.ts';

const now = new Date('2026-03-01T12:00:00Z');
const ago = (ms: number) => new Date(now.getTime() - ms).toISOString();
const SELF = 'operator-0/3';
const minute = 60_000;

const held = { phase: 'Pending', holder: { replica: SELF, epoch: 1 }, startTime: ago(1000) } as const;
const admitted = { ...held, phase: 'Claiming', conditions: [aCondition('Admitted', 'True')] } as const;
const note = { discussionId: 'd', noteId: 1, url: 'https://gitlab.test/n' };
const working = { ...admitted, note } as const;
const outcome = (reason = 'Succeeded' as const, age = 0) => ({ reason, message: 'm', time: ago(age) });

const observed = (run: Observed['run'], changes: Partial<Observed> = {}): Observed => ({
  run,
  execution: { kind: 'None' },
  holdsSandbox: false,
  session: { kind: 'New' },
  rivalry: { kind: 'None' },
  progress: { kind: 'Quiet' },
  self: SELF,
  holderAlive: true,
  publishesNote: true,
  usesSandbox: true,
  timeoutMs: 25 * minute,
  ttlMs: { success: 60 * minute, failure: 120 * minute },
  ...changes,
});

describe('the progress on the note of a run at work', () => {
  const atWork = { execution: { kind: 'Running', unrecorded: false }, holdsSandbox: true } as const;
  const run = aRun({ ...working, phase: 'Running' });
  it.each<[string, Observed, object]>([
    [
      'is announced when it is due',
      observed(run, { ...atWork, progress: { kind: 'Due' } }),
      { kind: 'AnnounceProgress' },
    ],
    [
      'is shown once that is announced',
      observed(run, { ...atWork, progress: { kind: 'Announced' } }),
      { kind: 'ShowProgress' },
    ],
    [
      'is waited for',
      observed(run, { ...atWork, progress: { kind: 'Quiet', ms: 20_000 } }),
      { kind: 'Wait', ms: 20_000 },
    ],
    [
      'comes after what has to be recorded',
      observed(run, { execution: { kind: 'Running', unrecorded: true }, progress: { kind: 'Due' } }),
      { kind: 'RecordProgress' },
    ],
    [
      'is of no interest once the loop has ended, although it was announced',
      observed(run, { execution: { kind: 'Finished' }, progress: { kind: 'Announced' } }),
      { kind: 'TakeResult' },
    ],
    [
      'is of no interest once the outcome is there',
      observed(aRun({ ...run.status, outcome: outcome() }), { progress: { kind: 'Announced' } }),
      { kind: 'UpdateNote' },
    ],
  ])('%s', (_, state, expected) => {
    expect(decide(state, now)).toMatchObject(expected);
  });
});

describe('decide, while a call waits for approval', () => {
  const at = (approvals: ApprovalsView, changes: Partial<Observed> = {}) =>
    observed(aRun({ ...working, phase: 'Running' }), {
      execution: { kind: 'Running', unrecorded: false, approvals },
      ...changes,
    });

  it.each<[string, Observed, object]>([
    ['takes an answer first', at({ need: 'Settle', waiting: true }), { kind: 'SettleApprovals' }],
    ['writes a question down', at({ need: 'Ask', waiting: false }), { kind: 'AskApprovals' }],
    ['tells people', at({ need: 'Tell', waiting: true }), { kind: 'TellApprovals' }],
    [
      'looks again when the time for an answer is over, which is before that of the run',
      at({ need: undefined, waiting: true }),
      { kind: 'Wait', ms: 23 * minute - 1000 },
    ],
    [
      'refuses the call then',
      at({ need: undefined, waiting: true }, { timeoutMs: 1_250 }),
      { kind: 'SettleApprovals' },
    ],
    [
      'records a checkpoint before it asks: the question comes after what was done',
      observed(aRun({ ...working, phase: 'Running' }), {
        execution: { kind: 'Running', unrecorded: true, approvals: { need: 'Ask', waiting: false } },
      }),
      { kind: 'RecordProgress' },
    ],
  ])('%s', (_name, given, step) => {
    expect(decide(given, now)).toEqual(step);
  });
});

describe('decide, before the outcome', () => {
  it.each<[string, Observed, object]>([
    [
      'guards a new run with the finalizer',
      observed(aRun({}, { metadata: { finalizers: [] } })),
      { kind: 'AddFinalizer' },
    ],
    ['takes a run that nobody holds', observed(aRun({}), { holderAlive: false }), { kind: 'TakeHold' }],
    [
      'leaves a run alone whose holder lives',
      observed(aRun({ ...held, holder: { replica: 'operator-1/1', epoch: 4 } })),
      { kind: 'Wait' },
    ],
    [
      'takes over from a holder whose Lease is dead',
      observed(aRun({ ...held, holder: { replica: 'operator-1/1', epoch: 4 } }), { holderAlive: false }),
      { kind: 'TakeHold' },
    ],
    [
      'does not mistake its own earlier incarnation for itself',
      observed(aRun({ ...working, holder: { replica: 'operator-0/2', epoch: 1 } }), { holderAlive: false }),
      { kind: 'TakeHold' },
    ],
    ['admits before it costs anything', observed(aRun(held)), { kind: 'Admit' }],
    ['posts the placeholder and claims side by side', observed(aRun(admitted)), { kind: 'Prepare' }],
    [
      'posts the placeholder alone when the sandbox was claimed already',
      observed(aRun(admitted), { holdsSandbox: true }),
      { kind: 'PostPlaceholder' },
    ],
    [
      'posts the placeholder alone when no sandbox is wanted',
      observed(aRun(admitted), { usesSandbox: false }),
      { kind: 'PostPlaceholder' },
    ],
    [
      'posts nothing when nothing is published',
      observed(aRun(admitted), { publishesNote: false }),
      { kind: 'ClaimSandbox' },
    ],
    ['claims a sandbox', observed(aRun(working)), { kind: 'ClaimSandbox' }],
    [
      'finds its sandbox again after a restart',
      observed(aRun({ ...working, phase: 'Running' })),
      { kind: 'ClaimSandbox' },
    ],
    ['starts the loop', observed(aRun(working), { holdsSandbox: true }), { kind: 'StartLoop' }],
    [
      'starts the loop without a sandbox when none is wanted',
      observed(aRun(working), { usesSandbox: false }),
      { kind: 'StartLoop' },
    ],
    [
      'waits for the loop, at most until the deadline',
      observed(aRun({ ...working, startTime: ago(24 * minute) }), {
        holdsSandbox: true,
        execution: { kind: 'Running', unrecorded: false },
      }),
      { kind: 'Wait', ms: minute },
    ],
    [
      'records a new checkpoint',
      observed(aRun(working), { holdsSandbox: true, execution: { kind: 'Running', unrecorded: true } }),
      { kind: 'RecordProgress' },
    ],
    [
      'takes the result',
      observed(aRun(working), { holdsSandbox: true, execution: { kind: 'Finished' } }),
      { kind: 'TakeResult' },
    ],
  ])('%s', (_, state, expected) => {
    expect(decide(state, now)).toMatchObject(expected);
  });
});

describe('decide, for a run that goes on with a session', () => {
  const spec = { spec: { sessionRef: { name: 's-1' }, message: 'And now?' } };
  const behind = { session: { kind: 'Behind', run: 'run-0' } } as const;
  const toOpen = { session: { kind: 'ToOpen' } } as const;
  const awaiting = aCondition('Succeeded', 'Unknown', AWAITS_TURN);
  const longAgo = { startTime: ago(26 * minute) };
  const waiting = { ...working, ...longAgo, conditions: [...admitted.conditions, awaiting] };
  it.each<[string, Observed, object]>([
    [
      'posts the placeholder before it waits, so that whoever replied sees that it was read',
      observed(aRun(admitted, spec), behind),
      { kind: 'PostPlaceholder' },
    ],
    [
      'waits for the run before it without a sandbox',
      observed(aRun(working, spec), behind),
      { kind: 'AwaitTurn', behind: 'run-0' },
    ],
    [
      'opens the session when nobody is before it',
      observed(aRun(working, spec), toOpen),
      { kind: 'OpenSession' },
    ],
    [
      'opens the session again in a process that takes it over in the middle of its loop',
      observed(aRun({ ...working, phase: 'Running' }, spec), toOpen),
      { kind: 'OpenSession' },
    ],
    [
      'claims a sandbox once the session is open',
      observed(aRun(working, spec), { session: { kind: 'Open' } }),
      { kind: 'ClaimSandbox' },
    ],
    [
      'does not pay with its own time for the runs before it',
      observed(aRun(waiting, spec), behind),
      { kind: 'AwaitTurn' },
    ],
    [
      'gets its turn however long it has waited',
      observed(aRun(waiting, spec), toOpen),
      { kind: 'OpenSession' },
    ],
    [
      'has a time limit like every run as soon as its session is open',
      observed(aRun({ ...working, ...longAgo }, spec), { session: { kind: 'Open' } }),
      { kind: 'SetOutcome', reason: 'Timeout' },
    ],
    [
      'can be cancelled while it waits',
      observed(aRun(working, { spec: { ...spec.spec, cancel: true } }), behind),
      { kind: 'SetOutcome', reason: 'Cancelled' },
    ],
    [
      'can be deleted while it waits',
      observed(aRun(working, { ...spec, metadata: { deletionTimestamp: ago(1) } }), behind),
      { kind: 'SetOutcome', reason: 'Cancelled' },
    ],
  ])('%s', (_, state, expected) => {
    expect(decide(state, now)).toMatchObject(expected);
  });
});

describe('decide, stop rules', () => {
  const cancelled = { spec: { cancel: true } };
  const deleted = { metadata: { deletionTimestamp: ago(1) } };
  it.each<[string, Observed, object]>([
    [
      'cancels a run before it was admitted',
      observed(aRun(held, cancelled)),
      { kind: 'SetOutcome', reason: 'Cancelled' },
    ],
    [
      'kills the loop of a cancelled run',
      observed(aRun(working, cancelled), { execution: { kind: 'Running', unrecorded: true } }),
      { kind: 'StopLoop', reason: 'Cancelled' },
    ],
    [
      'keeps an answer that was there before the cancel was seen',
      observed(aRun(working, cancelled), { execution: { kind: 'Finished' } }),
      { kind: 'TakeResult' },
    ],
    [
      'ends a run that is deleted',
      observed(aRun(working, deleted)),
      { kind: 'SetOutcome', reason: 'Cancelled' },
    ],
    [
      'needs nothing more for a deleted run that it never touched',
      observed(aRun({}, { metadata: { finalizers: [], deletionTimestamp: ago(1) } })),
      { kind: 'Done' },
    ],
    [
      'ends at the time limit',
      observed(aRun({ ...working, phase: 'Running', startTime: ago(25 * minute) })),
      { kind: 'SetOutcome', reason: 'Timeout' },
    ],
    [
      'says at the time limit what failed all the time',
      observed(aRun({ ...held, startTime: ago(25 * minute) }), { lastFailure: 'Admit: GitLab answers 502' }),
      { reason: 'Timeout', message: expect.stringContaining('Admit: GitLab answers 502') },
    ],
    [
      'says that no sandbox came, when that is what took the time',
      observed(
        aRun({
          ...working,
          startTime: ago(25 * minute),
          conditions: [
            aCondition('Admitted', 'True'),
            aCondition('SandboxReady', 'False', 'SandboxUnavailable'),
          ],
        }),
      ),
      { kind: 'SetOutcome', reason: 'SandboxUnavailable' },
    ],
    [
      'stops the loop at the time limit, so that it reports what it has',
      observed(aRun({ ...working, startTime: ago(25 * minute) }), {
        execution: { kind: 'Running', unrecorded: false },
      }),
      { kind: 'StopLoop', reason: 'Timeout' },
    ],
  ])('%s', (_, state, expected) => {
    expect(decide(state, now)).toMatchObject(expected);
  });
});

describe('decide, after the outcome', () => {
  const ended = { ...working, phase: 'Finishing', checkpoint: { sequence: 2, key: 'k' } } as const;
  const admittedC = aCondition('Admitted', 'True');
  const claimed = aCondition('SandboxReady', 'True', 'Claimed');
  const placeholder = aCondition('NotePosted', 'True', 'Placeholder');
  const posted = aCondition('NotePosted', 'True', 'Posted');
  const retrying = aCondition('NotePosted', 'Unknown', 'Retrying');
  const saved = aCondition('SessionSaved', 'True', 'Saved');
  const released = aCondition('SandboxReady', 'False', 'Released');
  const lingering = aCondition('SandboxReady', 'False', 'Lingering');
  const at = (age: number, ...conditions: ReturnType<typeof aCondition>[]) =>
    observed(aRun({ ...ended, outcome: outcome('Succeeded', age), conditions: [admittedC, ...conditions] }));

  it.each<[string, Observed, object]>([
    ['tells it on the merge request first', at(0, claimed, placeholder), { kind: 'UpdateNote' }],
    [
      'looks for the note whose record was lost',
      observed(
        aRun({
          ...held,
          phase: 'Finishing',
          outcome: outcome(),
          noteIntent: { time: ago(1) },
          conditions: [admittedC, aCondition('NotePosted', 'Unknown', 'Posting')],
        }),
      ),
      { kind: 'UpdateNote' },
    ],
    [
      'has no note to update when it was refused before one was meant',
      observed(aRun({ ...held, phase: 'Finishing', outcome: outcome() })),
      { kind: 'Finish' },
    ],
    [
      'does not wait for GitLab for ever',
      at(REPORT_PATIENCE_MS, claimed, placeholder),
      { kind: 'SaveSession' },
    ],
    ['then saves the session', at(0, claimed, posted), { kind: 'SaveSession' }],
    [
      'tries a failed save again',
      at(0, claimed, posted, aCondition('SessionSaved', 'Unknown', 'Retrying')),
      { kind: 'SaveSession' },
    ],
    [
      'gives the sandbox back although the save failed',
      at(SAVE_PATIENCE_MS, claimed, posted, aCondition('SessionSaved', 'Unknown', 'Retrying')),
      { kind: 'ReleaseSandbox' },
    ],
    [
      'then leaves the sandbox to a reply: what was answered is told and saved',
      at(0, claimed, posted, saved),
      { kind: 'LingerSandbox' },
    ],
    [
      'leaves the sandbox of a partial answer to a reply too',
      observed(
        aRun({
          ...ended,
          outcome: { ...outcome(), reason: 'BudgetExceeded' },
          conditions: [admittedC, claimed, posted, saved],
        }),
      ),
      { kind: 'LingerSandbox' },
    ],
    [
      'leaves it too when nobody was to be told',
      { ...at(0, claimed, saved), publishesNote: false },
      { kind: 'LingerSandbox' },
    ],
    ...(['ModelError', 'Timeout', 'Cancelled', 'Superseded', 'SandboxLost'] as const).map(
      (reason): [string, Observed, object] => [
        `gives the sandbox back after ${reason}`,
        observed(
          aRun({
            ...ended,
            outcome: { ...outcome(), reason },
            conditions: [admittedC, claimed, posted, saved],
          }),
        ),
        { kind: 'ReleaseSandbox' },
      ],
    ),
    [
      'gives the sandbox back when the session could not be saved',
      at(0, claimed, posted, aCondition('SessionSaved', 'False', 'NotResumable')),
      { kind: 'ReleaseSandbox' },
    ],
    [
      'gives the sandbox back of a run that is being deleted',
      observed(
        aRun(
          { ...ended, outcome: outcome(), conditions: [admittedC, claimed, posted, saved] },
          { metadata: { deletionTimestamp: ago(0) } },
        ),
      ),
      { kind: 'ReleaseSandbox' },
    ],
    ['ends when its sandbox lingers', at(0, lingering, posted, saved), { kind: 'Finish' }],
    [
      'gives a sandbox back whose claim was never recorded',
      observed(
        aRun({
          ...working,
          phase: 'Finishing',
          outcome: { ...outcome(), reason: 'SandboxUnavailable' },
          conditions: [admittedC, aCondition('SandboxReady', 'False', 'SandboxUnavailable'), posted],
        }),
      ),
      { kind: 'ReleaseSandbox' },
    ],
    ['ends when nothing is left to do', at(0, released, posted, saved), { kind: 'Finish' }],
    ['goes on while GitLab is down', at(0, claimed, retrying), { kind: 'SaveSession' }],
    [
      'holds no sandbox for a GitLab that is down',
      at(0, claimed, retrying, saved),
      { kind: 'ReleaseSandbox' },
    ],
    ['tells it when nothing else is left', at(0, released, retrying, saved), { kind: 'UpdateNote' }],
    [
      'ends without the note when GitLab stays down',
      at(REPORT_PATIENCE_MS, released, retrying, saved),
      { kind: 'Finish' },
    ],
    [
      'keeps a namespace that is being deleted for a short time only',
      observed(
        aRun(
          {
            ...ended,
            outcome: outcome('Succeeded', DELETED_REPORT_PATIENCE_MS),
            conditions: [released, retrying, saved],
          },
          { metadata: { deletionTimestamp: ago(DELETED_REPORT_PATIENCE_MS) } },
        ),
      ),
      { kind: 'Finish' },
    ],
  ])('%s', (_, state, expected) => {
    expect(decide(state, now)).toMatchObject(expected);
  });

  const terminal = (phase: 'Succeeded' | 'Failed' | 'Skipped', age: number, finalizers: string[] = []) =>
    observed(aRun({ ...ended, phase, completionTime: ago(age) }, { metadata: { finalizers } }));
  it.each<[string, Observed, object]>([
    [
      'lets go of the object when it is terminal',
      terminal('Succeeded', 0, ['hummingbird.dev/sandbox']),
      { kind: 'RemoveFinalizer' },
    ],
    ['keeps the record for its time', terminal('Succeeded', 59 * minute), { kind: 'Wait', ms: minute }],
    ['deletes it afterwards', terminal('Succeeded', 60 * minute), { kind: 'DeleteRun' }],
    [
      'keeps a skipped run as long as a successful one, as the field says',
      terminal('Skipped', 60 * minute),
      { kind: 'DeleteRun' },
    ],
    [
      'ends a loop that this process still has of a run that another one finished',
      { ...terminal('Succeeded', 0), execution: { kind: 'Running', unrecorded: false } },
      { kind: 'StopLoop', reason: 'Fenced' },
    ],
    ['keeps a failure for longer', terminal('Failed', 60 * minute), { kind: 'Wait', ms: 60 * minute }],
  ])('%s', (_, state, expected) => {
    expect(decide(state, now)).toMatchObject(expected);
  });

  it('never leaves a terminal phase, whatever else is true', () => {
    for (const execution of [
      { kind: 'None' },
      { kind: 'Finished' },
      { kind: 'Running', unrecorded: true },
    ] as const)
      for (const cancel of [true, false])
        for (const holderAlive of [true, false])
          expect(
            decide(
              {
                ...observed(
                  aRun(
                    { ...ended, phase: 'Failed', completionTime: ago(0) },
                    { spec: { cancel }, metadata: { finalizers: [] } },
                  ),
                ),
                execution,
                holderAlive,
              },
              now,
            ).kind,
          ).toBe(execution.kind === 'Running' ? 'StopLoop' : 'Wait');
  });
});

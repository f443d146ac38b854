import { expect, test } from 'vitest';
import { aCondition, aRun } from '../../../../test/builders/run.ts';
import { aStep } from '../../../../test/builders/step.ts';
import { aWorkflow } from '../../../../test/builders/workflow.ts';
import { startLocalSandbox } from '../../../../test/fakes/local-sandbox.ts';
import type { AgentRunStatus } from '../../../crds/agent-run.ts';
import type { NoteOutcome, NoteRef, Notes } from '../../../notes/port.ts';
import type { ClaimResult, SandboxProvider } from '../../../sandbox/port.ts';
import { actionToken } from '../../../settings/tokens.ts';
import { prepare } from './prepare.ts';

const spec = { sandbox: { poolRef: { name: 'analysis', namespace: 'sandboxes' } } };
const note: NoteRef = { discussionId: 'd', noteId: 1, url: 'https://gitlab.test/n' };
const posted: NoteOutcome<NoteRef> = { kind: 'Ok', value: note };
const waiting: ClaimResult = { kind: 'Waiting', message: 'none is free' };
const admitted: AgentRunStatus = {
  phase: 'Claiming',
  noteIntent: { time: '2026-03-01T12:00:00.000Z' },
  conditions: [
    aCondition('Admitted', 'True'),
    aCondition('SandboxReady', 'Unknown', 'Claiming'),
    aCondition('NotePosted', 'Unknown', 'Posting'),
  ],
};

/** An admitted run, with a GitLab and a pool that answer so. */
function step(create: () => Promise<NoteOutcome<NoteRef>>, claim: () => Promise<ClaimResult>) {
  const notes = { create, findByRun: async () => ({ kind: 'Ok', value: undefined }) };
  return aStep(
    aRun(admitted, { spec }),
    {
      actionToken: async () => ({ kind: 'Ok', value: actionToken('glpat-action') }),
      notes: { notesFor: () => notes as unknown as Notes }, // the two methods that a placeholder needs
      sandboxes: { claim } as unknown as SandboxProvider, // and the one that a claim needs
    },
    aWorkflow(),
  );
}

const conditions = (status: AgentRunStatus | undefined) =>
  Object.fromEntries((status?.conditions ?? []).map(({ type, reason }) => [type, reason]));

async function aSandbox() {
  const sandbox = await startLocalSandbox();
  const claim = async (): Promise<ClaimResult> => ({ kind: 'Claimed', sandbox });
  return { claim, ref: sandbox.ref, [Symbol.asyncDispose]: () => sandbox.cleanup().then(() => undefined) };
}

test('the note and the sandbox are recorded by one write', async () => {
  await using sandbox = await aSandbox();
  const { context } = step(async () => posted, sandbox.claim);
  const { status, afterMs } = await prepare(context);
  expect(status).toMatchObject({ note, sandbox: { name: sandbox.ref.name } });
  expect(conditions(status)).toMatchObject({ SandboxReady: 'Claimed', NotePosted: 'Placeholder' });
  expect(status?.conditions?.map(({ type }) => type)).toEqual(admitted.conditions?.map(({ type }) => type));
  expect(afterMs).toBeUndefined();
});

test('both are under way at once', async () => {
  const order: string[] = [];
  const { promise: claimed, resolve } = Promise.withResolvers<void>();
  const { context } = step(
    async () => {
      await claimed;
      order.push('note');
      return posted;
    },
    async () => {
      order.push('claim');
      resolve();
      return waiting;
    },
  );
  await prepare(context);
  expect(order).toEqual(['claim', 'note']);
});

test('a run that waits for a sandbox has its note recorded, and since when it waits', async () => {
  const { status } = await prepare(
    step(
      async () => posted,
      async () => waiting,
    ).context,
  );
  expect(status?.note).toEqual(note);
  expect(conditions(status)).toMatchObject({ SandboxReady: 'SandboxUnavailable', NotePosted: 'Placeholder' });
});

test('a GitLab that is away does not cost the sandbox that was claimed meanwhile, nor the place in line', async () => {
  await using sandbox = await aSandbox();
  const away = () => Promise.reject(new Error('GitLab is away'));
  const claimed = await prepare(step(away, sandbox.claim).context);
  expect(claimed.status).toMatchObject({ sandbox: { name: sandbox.ref.name } });
  const inLine = await prepare(step(away, async () => waiting).context);
  expect(conditions(inLine.status)).toMatchObject({ SandboxReady: 'SandboxUnavailable' });
  expect(inLine.afterMs).toBeUndefined();
  await expect(prepare(step(away, () => Promise.reject(new Error('no API server'))).context)).rejects.toThrow(
    'GitLab is away',
  );
});

test('a note that was posted is recorded when the claim fails', async () => {
  const { status } = await prepare(
    step(
      async () => posted,
      () => Promise.reject(new Error('no API server')),
    ).context,
  );
  expect(status?.note).toEqual(note);
  expect(conditions(status)).toMatchObject({ SandboxReady: 'Claiming' });
});

test('a run whose note is refused ends with that word, and knows the sandbox that it has to give back', async () => {
  await using sandbox = await aSandbox();
  const refused = async () => ({ kind: 'Refused', status: 403, message: 'no' }) as const;
  const { status } = await prepare(step(refused, sandbox.claim).context);
  expect(status).toMatchObject({
    outcome: { reason: 'AccessDenied' },
    sandbox: { name: sandbox.ref.name },
  });
  expect(conditions(status)).toMatchObject({ SandboxReady: 'Claimed', NotePosted: 'Refused' });
});

test('a run without a pool ends with that word, and knows the note that has to say so', async () => {
  const gone = async (): Promise<ClaimResult> => ({ kind: 'Unavailable', message: 'no such pool' });
  const { status } = await prepare(step(async () => posted, gone).context);
  expect(status).toMatchObject({ outcome: { reason: 'SandboxUnavailable' }, note });
  expect(conditions(status)).toMatchObject({ SandboxReady: 'SandboxUnavailable', NotePosted: 'Placeholder' });
});

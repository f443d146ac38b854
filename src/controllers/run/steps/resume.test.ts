import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { aCondition, aRun } from '../../../../test/builders/run.ts';
import { anEnvelope, aSession } from '../../../../test/builders/session.ts';
import { aStep } from '../../../../test/builders/step.ts';
import { loadSession, saveSession, sessionKey } from '../../../agent/session.ts';
import type { AgentRun, AgentRunStatus } from '../../../crds/agent-run.ts';
import type { AgentSession } from '../../../crds/agent-session.ts';
import type { KubeClient } from '../../../kube/port.ts';
import { createFolderStore } from '../../../store/folder.ts';
import { type ObjectStore, StoreError } from '../../../store/port.ts';
import { AWAITS_TURN } from '../decide.ts';
import { readEarlier } from '../earlier.ts';
import { awaitTurn, openSession, refusedSession } from './resume.ts';

let folder: string;
let store: ObjectStore;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'resume-'));
  store = createFolderStore(folder);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const reply = (status: AgentRunStatus = { phase: 'Claiming' }, spec: Partial<AgentRun['spec']> = {}) =>
  aRun(status, { spec: { sessionRef: { name: 's-1' }, message: 'And now?', ...spec } });
/** Whether sessions from before there were AgentSessions are gone on with. */
let adopts = false;
afterEach(() => {
  adopts = false;
});

const uid = reply().metadata.uid ?? '';

function step(run: AgentRun, session: AgentSession | undefined, others: readonly AgentRun[] = []) {
  // The one method that these steps use.
  const kube = { get: async () => session } as unknown as KubeClient;
  return aStep(run, { kube, store, adoptsSessions: adopts, sessionRuns: () => [run, ...others] });
}
const conditionOf = (status: AgentRunStatus | undefined, wanted: string) =>
  status?.conditions?.find(({ type }) => type === wanted);

describe('openSession', () => {
  it('keeps the session for the run as it found it', async () => {
    await saveSession(store, { envelope: anEnvelope(), transcript: '# First' });
    const { context, events } = step(reply(), aSession());
    expect(await openSession(context)).toEqual({});
    expect(context.local.openSessions).toContain(uid);
    expect(events).toEqual(['SessionOpened']);
    await saveSession(store, { envelope: anEnvelope({ model: 'another' }), transcript: '# Second' });
    expect(await readEarlier(store, uid)).toMatchObject({
      id: 's-1',
      envelope: { model: 'test-script' },
      messages: anEnvelope().contents,
      transcript: '# First',
    });
  });

  it('goes on from what was kept first, in a process that took the run over', async () => {
    await saveSession(store, { envelope: anEnvelope(), transcript: '# First' });
    await openSession(step(reply(), aSession()).context);
    const kept = await readEarlier(store, uid);
    await store.delete(sessionKey('s-1', 'context'));
    const { context } = step(reply({ phase: 'Running' }), aSession());
    await openSession(context);
    expect(context.local.openSessions).toContain(uid);
    expect(await readEarlier(store, uid)).toEqual(kept);
  });

  it('keeps a conversation from before there were envelopes', async () => {
    const contents = [
      { role: 'user', parts: [{ text: 'hi' }] },
      { role: 'model', parts: [{ text: 'hello' }] },
    ];
    await store.put(sessionKey('s-1', 'context'), Buffer.from(JSON.stringify(contents)));
    const { context } = step(reply(), aSession());
    expect(await openSession(context)).toEqual({});
    expect((await readEarlier(store, uid))?.messages).toMatchObject([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'hello' },
    ]);
  });

  it('knows whose save it goes on from, for the sandbox that lingers with it', async () => {
    await saveSession(store, { envelope: anEnvelope({ run: 'run-0' }), transcript: '' });
    const { context } = step(reply(), aSession());
    await openSession(context);
    expect(context.local.savedBy.get(uid)).toBe('run-0');
  });

  it('counts the time of the run from its turn on', async () => {
    await saveSession(store, { envelope: anEnvelope(), transcript: '' });
    const run = reply({
      phase: 'Claiming',
      startTime: '2026-03-01T11:00:00.000Z',
      conditions: [aCondition('Succeeded', 'Unknown', AWAITS_TURN)],
    });
    const { status } = await openSession(step(run, aSession()).context);
    expect(status?.startTime).toBe('2026-03-01T12:00:00.000Z');
    expect(conditionOf(status, 'Succeeded')).toMatchObject({ status: 'Unknown', reason: 'Resuming' });
  });

  it.each<[string, AgentSession | undefined]>([
    ['is not there', undefined],
    ['is being deleted', aSession({}, { deletionTimestamp: '2026-03-01T11:00:00Z' })],
    ['has reached its time', aSession({ expiresAt: '2026-03-01T12:00:00Z' })],
    ['has nothing in the store', aSession()],
  ])('ends the run when the session %s, without a cold start', async (what, session) => {
    if (what !== 'has nothing in the store')
      await saveSession(store, { envelope: anEnvelope(), transcript: '' });
    const { context, events } = step(reply(), session);
    const { status } = await openSession(context);
    expect(status?.outcome).toMatchObject({
      reason: 'InvalidSpec',
      message: expect.stringMatching(/s-1 has expired.*without spec\.sessionRef/),
    });
    expect(conditionOf(status, 'SessionSaved')).toMatchObject({ status: 'False', reason: 'Expired' });
    expect(events).toEqual(['SessionExpired']);
    expect(context.local.openSessions.size).toBe(0);
  });

  it('ends the run when the store holds the words of another merge request', async () => {
    await saveSession(store, { envelope: anEnvelope({ iid: 7 }), transcript: '' });
    const { context } = step(reply(), aSession());
    expect((await openSession(context)).status?.outcome).toMatchObject({
      reason: 'InvalidSpec',
      message: expect.stringContaining('group/app!7'),
    });
    expect(context.local.openSessions.size).toBe(0);
  });

  it('ends the run with what is wrong with a session that cannot be read', async () => {
    await store.put(sessionKey('s-1', 'context'), Buffer.from('{"format_version":2}'));
    const { status } = await openSession(step(reply(), aSession()).context);
    expect(status?.outcome).toMatchObject({
      reason: 'InvalidSpec',
      message: expect.stringContaining('format 2'),
    });
  });

  it('is tried again when the store is away: a session is not expired because of that', async () => {
    const away = new StoreError('the bucket is away', { retryable: true });
    store = { ...store, get: () => Promise.reject(away) };
    await expect(openSession(step(reply(), aSession()).context)).rejects.toBe(away);
  });
});

describe('a session that has no AgentSession', () => {
  const trigger = { kind: 'Reply', discussionId: 'd' } as const;
  const fromBefore = async () =>
    void (await store.put(
      sessionKey('s-1', 'context'),
      Buffer.from(JSON.stringify([{ role: 'user', parts: [{ text: 'hi' }] }])),
    ));

  it('has expired', async () => {
    await fromBefore();
    const { context, events } = step(reply({ phase: 'Claiming' }, { trigger }), undefined);
    expect(conditionOf((await openSession(context)).status, 'SessionSaved')?.reason).toBe('Expired');
    expect(events).toEqual(['SessionExpired']);
  });

  it('is gone on with by a reply where old markers count, and by nobody else', async () => {
    adopts = true;
    await fromBefore();
    const { context } = step(reply({ phase: 'Claiming' }, { trigger }), undefined);
    expect(await openSession(context)).toEqual({});
    expect((await readEarlier(store, uid))?.messages).toMatchObject([{ role: 'user', content: 'hi' }]);
    const byHand = step(reply(), undefined);
    expect(conditionOf((await openSession(byHand.context)).status, 'SessionSaved')?.reason).toBe('Expired');
  });

  it('has expired when the store does not hold it either', async () => {
    adopts = true;
    const { context } = step(reply({ phase: 'Claiming' }, { trigger }), undefined);
    expect(conditionOf((await openSession(context)).status, 'SessionSaved')?.reason).toBe('Expired');
  });

  it('is not gone on with when it is of another merge request', async () => {
    adopts = true;
    await saveSession(store, { envelope: anEnvelope({ iid: 43 }), transcript: '' });
    const { context } = step(reply({ phase: 'Claiming' }, { trigger }), undefined);
    expect((await openSession(context)).status?.outcome?.reason).toBe('InvalidSpec');
  });
});

describe('awaitTurn', () => {
  it('says once for whom the run waits', () => {
    const { context, after, events } = step(reply(), aSession());
    const { status } = awaitTurn(context, 'run-0');
    expect(conditionOf(status, 'Succeeded')).toMatchObject({
      status: 'Unknown',
      reason: AWAITS_TURN,
      message: expect.stringContaining('AgentRun run-0'),
    });
    const again = after(reply(status));
    expect(awaitTurn(again, 'run-0').status).toBeUndefined();
    expect(awaitTurn(again, 'run-1').status).toBeDefined();
    expect(events).toEqual([AWAITS_TURN, AWAITS_TURN]);
  });
});

describe('refusedSession', () => {
  const of = (run: AgentRun, session?: AgentSession, others: readonly AgentRun[] = []) =>
    refusedSession(step(run, session, others).context);

  it('lets a run go on with a session of its workflow and merge request', async () => {
    expect(await of(reply(), aSession())).toBeUndefined();
  });

  it('lets a run pass whose session is unknown: that is told in its note', async () => {
    expect(await of(reply())).toBeUndefined();
  });

  it('has nothing against a run with a session of its own', async () => {
    expect(await of(aRun())).toBeUndefined();
  });

  it.each<[string, Partial<AgentRun['spec']>]>([
    ['workflow', { workflowRef: { name: 'code-review' } }],
    ['project', { mergeRequest: { project: 'group/other', iid: 42 } }],
    ['merge request', { mergeRequest: { project: 'group/app', iid: 43 } }],
  ])('refuses the session of another %s', async (_, spec) => {
    expect(await of(reply({}, spec), aSession())).toMatch(
      /s-1 belongs to workflow analyze-failures on group\/app!42/,
    );
  });

  it('refuses the session of another merge request also while its first run is at work', async () => {
    const first = aRun(
      { phase: 'Running' },
      { metadata: { uid: 's-1' }, spec: { mergeRequest: { project: 'group/app', iid: 7 } } },
    );
    expect(await of(reply(), undefined, [first])).toContain('group/app!7');
  });

  it.each([undefined, ' \n'])('refuses a run that says nothing (%j)', async (message) => {
    const { message: _, ...spec } = reply().spec;
    const run = { ...reply(), spec: { ...spec, ...(message === undefined ? {} : { message }) } };
    expect(await of(run, aSession())).toMatch(/spec\.message is missing/);
  });
});

it('a session that is saved knows the run that saved it', async () => {
  await saveSession(store, { envelope: anEnvelope({ run: 'u-1' }), transcript: '' });
  const loaded = await loadSession(store, 's-1');
  expect(loaded?.read).toMatchObject({ kind: 'Canonical', envelope: { run: 'u-1' } });
});

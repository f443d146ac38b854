import { describe, expect, it } from 'vitest';
import type { AgentSession } from '../../crds/agent-session.ts';
import { ARCHIVE_PATIENCE_MS, decideSession } from './decide.ts';

const now = new Date('2026-03-01T12:00:00Z');
const ago = (ms: number) => new Date(now.getTime() - ms).toISOString();
const archive = { key: 'sessions/s1/context.json', sha256: 'a'.repeat(64), bytes: 3 };
const resumable = {
  type: 'Resumable',
  status: 'True',
  reason: 'Archived',
  message: 'A reply goes on from sessions/s1/context.json',
  lastTransitionTime: ago(0),
} as const;

const aSession = (
  status: AgentSession['status'] = {},
  metadata: Partial<AgentSession['metadata']> = {},
): AgentSession => ({
  apiVersion: 'hummingbird.dev/v1alpha1',
  kind: 'AgentSession',
  metadata: { name: 's1', namespace: 'agents', finalizers: ['hummingbird.dev/archive'], ...metadata },
  spec: { workflowRef: { name: 'w' }, mergeRequest: { project: 'group/app', iid: 1 } },
  status,
});

describe('decideSession', () => {
  it.each([
    ['guards a session before anything else', aSession({}, { finalizers: [] }), { kind: 'AddFinalizer' }],
    [
      'says that nothing is archived yet',
      aSession({}),
      { kind: 'SetStatus', resumable: false, reason: 'NoArchive' },
    ],
    [
      'says that a reply can go on',
      aSession({ archive }),
      { kind: 'SetStatus', resumable: true, reason: 'Archived' },
    ],
    [
      'rests when the condition is true already',
      aSession({ archive, conditions: [resumable] }),
      { kind: 'Done' },
    ],
    [
      'comes back when the session expires',
      aSession({ archive, conditions: [resumable], expiresAt: new Date(now.getTime() + 5000).toISOString() }),
      { kind: 'Wait', ms: 5000 },
    ],
    ['deletes an expired session', aSession({ archive, expiresAt: ago(1) }), { kind: 'DeleteSession' }],
    [
      'deletes the archive of a session that is being deleted',
      aSession({ archive }, { deletionTimestamp: ago(1000) }),
      { kind: 'DeleteArchive', lastTry: false },
    ],
    [
      'does not wait for ever for a store that is down',
      aSession({ archive }, { deletionTimestamp: ago(ARCHIVE_PATIENCE_MS + 1) }),
      { kind: 'DeleteArchive', lastTry: true },
    ],
    [
      'leaves a deleted session alone that others still hold',
      aSession({}, { deletionTimestamp: ago(1), finalizers: ['someone/else'] }),
      { kind: 'Done' },
    ],
  ])('%s', (_, session, expected) => {
    expect(decideSession(session, undefined, now)).toMatchObject(expected);
  });

  const lingering = { pod: 'p-1', namespace: 'sandboxes', until: ago(-300_000) };
  const settled = { archive, conditions: [resumable] };
  it.each([
    ['shows the sandbox that is kept for a reply', aSession(settled), lingering, lingering],
    ['shows it no more once it is gone', aSession({ ...settled, lingering }), undefined, undefined],
    [
      'shows the one that came after it',
      aSession({ ...settled, lingering }),
      { ...lingering, pod: 'p-2' },
      { ...lingering, pod: 'p-2' },
    ],
  ])('%s', (_, session, seen, shown) => {
    expect(decideSession(session, seen, now)).toMatchObject({ kind: 'SetStatus', lingering: shown });
  });

  it('rests while the same sandbox is kept', () => {
    expect(decideSession(aSession({ ...settled, lingering }), { ...lingering }, now)).toEqual({
      kind: 'Done',
    });
  });
});

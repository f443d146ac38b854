import { expect, it } from 'vitest';
import { aRun } from '../../../test/builders/run.ts';
import type { AgentRunStatus } from '../../crds/agent-run.ts';
import { type ProgressEdits, type ProgressNote, progressNote } from './progress.ts';

const now = new Date('2026-03-01T12:00:00Z');
const ago = (seconds: number) => new Date(now.getTime() - seconds * 1000).toISOString();
const note = { discussionId: 'd', noteId: 1, url: 'http://gitlab.test/n' };
const checkpoint = { sequence: 2, key: 'k' };
const question = { id: 'a'.repeat(12), tool: 't', arguments: '{}', digest: 'd', requestTime: ago(5) };
const working: AgentRunStatus = { note, checkpoint, noteIntent: { time: ago(61) } };

it.each<[string, ProgressNote, AgentRunStatus, ProgressEdits | undefined]>([
  ['is quiet when it shows no progress', { kind: 'Quiet' }, working, undefined],
  ['is quiet before it stands', { kind: 'Quiet' }, { checkpoint, noteIntent: { time: ago(61) } }, {}],
  [
    'is quiet before there is anything to tell',
    { kind: 'Quiet' },
    { note, noteIntent: { time: ago(61) } },
    {},
  ],
  ['is due a minute after it was posted', { kind: 'Due' }, working, {}],
  ['waits for the minute', { kind: 'Quiet', ms: 20_000 }, { ...working, noteIntent: { time: ago(40) } }, {}],
  [
    'waits for a minute after each edit',
    { kind: 'Quiet', ms: 59_000 },
    { ...working, noteProgressTime: ago(1) },
    {},
  ],
  [
    'keeps to the minute of a holder before',
    { kind: 'Quiet', ms: 1_000 },
    { ...working, noteProgressTime: ago(59) },
    {},
  ],
  ['is quiet while it tells what there is', { kind: 'Quiet' }, working, { told: 2 }],
  ['is due again after another checkpoint', { kind: 'Due' }, working, { told: 1 }],
  [
    'is edited once that is announced',
    { kind: 'Announced' },
    { ...working, noteProgressTime: ago(0) },
    { announcedMs: 5 },
  ],
  [
    'is left alone while it asks for approval',
    { kind: 'Quiet' },
    { ...working, approvals: [{ ...question, state: 'Waiting' }] },
    {},
  ],
  [
    'is due once that is answered',
    { kind: 'Due' },
    { ...working, approvals: [{ ...question, state: 'Approved' }] },
    {},
  ],
  ['is left alone when GitLab refuses an edit', { kind: 'Quiet' }, working, { refused: true }],
])('a note %s', (_, expected, status, edits) => {
  expect(progressNote(aRun(status), edits, now)).toEqual(expected);
});

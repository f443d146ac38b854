import { describe, expect, it } from 'vitest';
import { ALICE, aBridge, aNote, levels, trusting } from '../../../test/builders/bridge.ts';
import { aRun } from '../../../test/builders/run.ts';
import type { AgentRun } from '../../crds/agent-run.ts';
import { type Approval, approvalAnnotation } from '../../crds/approval.ts';
import type { Answer, World } from './decision.ts';
import { decideNote } from './note.ts';

const [A, B] = ['aaaaaaaaaaaa', 'bbbbbbbbbbbb'] as const;

const question = (id: string, changes: Partial<Approval> = {}): Approval => ({
  ...{ id, tool: 'docs_publish', arguments: '{}', digest: id.repeat(6).slice(0, 64), state: 'Waiting' },
  requestTime: '2026-03-01T12:00:00Z',
  ...changes,
});

const asking = (name: string, approvals: readonly Approval[], changes: Partial<AgentRun['metadata']> = {}) =>
  aRun({ phase: 'Running', approvals: [...approvals] }, { metadata: { name, ...changes } });

function answered(text: string, runs: readonly AgentRun[], world: Partial<World> = {}): Answer {
  const verdict = decideNote(aNote({ text, author: ALICE, noteId: 77 }), aBridge({ runs, ...world }));
  if (verdict.kind === 'Ask') throw new Error(JSON.stringify(verdict));
  return verdict.decisions[0] as Answer; // a command of a Developer
}

describe('a command that answers a question', () => {
  it('is written down with the verdict, who gave it, and in which note', () => {
    const run = asking('r', [question(A), question(B)]);
    expect(answered(`/hummingbird approve ${A}`, [run])).toMatchObject({
      what: 'Approval',
      approval: { run: { metadata: { name: 'r' } }, id: A, text: `approve by ${ALICE.name}, note 77` },
      text: expect.stringContaining('Approved: `r` may call `docs_publish`'),
    });
    expect(answered(`/hummingbird deny ${B.toUpperCase()} please`, [run]).approval).toMatchObject({
      id: B,
      text: `deny by ${ALICE.name}, note 77`,
    });
  });

  it('needs no id while only one question was ever asked', () => {
    expect(answered('/hummingbird approve', [asking('r', [question(A)])]).approval?.id).toBe(A);
  });

  it('approves nothing without an id when another question was asked before: that may be the one that was read', () => {
    const decided = question(A, { state: 'Expired' });
    const answer = answered('/hummingbird approve', [asking('r', [decided, question(B)])]);
    expect(answer.approval).toBeUndefined();
    expect(answer.text).toContain(`\`/hummingbird approve ${B}\``);
    expect(answer.text).not.toContain(A);
    const others = [asking('r', [question(A)]), asking('s', [question(B)])];
    expect(answered('/hummingbird deny', others).approval).toBeUndefined();
  });

  it.each<[string, readonly AgentRun[], RegExp]>([
    ['nothing waits', [aRun({ phase: 'Running' })], /No call waits/],
    ['the run has ended', [aRun({ phase: 'Succeeded', approvals: [question(A)] })], /No call waits/],
    ['it was decided', [asking('r', [question(A, { state: 'Denied', by: 'bob' })])], /is denied already/],
    [
      'it is being decided',
      [asking('r', [question(A)], { annotations: { [approvalAnnotation(A)]: 'deny by bob' } })],
      /is denied already/,
    ],
    ['there is no such id', [asking('r', [question(B)])], /which call is meant/],
  ])('changes nothing when %s', (_what, runs, text) => {
    const answer = answered(`/hummingbird approve ${A}`, runs);
    expect(answer.approval).toBeUndefined();
    expect(answer.text).toMatch(text);
  });

  it('says the same when its message comes again', () => {
    const annotations = { [approvalAnnotation(A)]: `approve by ${ALICE.name}, note 77` };
    const over = {
      phase: 'Succeeded',
      approvals: [question(A, { state: 'Approved', by: `${ALICE.name}, note 77` })],
    } as const;
    const [first, again, later, last] = [
      answered(`/hummingbird approve ${A}`, [asking('r', [question(A)])]),
      answered(`/hummingbird approve ${A}`, [asking('r', [question(A)], { annotations })]),
      answered(`/hummingbird approve ${A}`, [
        asking('r', [question(A, { state: 'Approved', by: `${ALICE.name}, note 77` })]),
      ]),
      answered(`/hummingbird approve ${A}`, [
        aRun({ ...over, approvals: [...over.approvals] }, { metadata: { name: 'r' } }),
      ]),
    ];
    expect([again.text, later.text, last.text]).toEqual([first.text, first.text, first.text]);
    expect(again.approval).toBeUndefined();
  });

  it('of somebody who is no Developer is refused', () => {
    const facts = trusting({ access: levels({ [ALICE.id]: 20 }) });
    const answer = answered(`/hummingbird approve ${A}`, [asking('r', [question(A)])], { facts });
    expect(answer).toMatchObject({ what: 'Refusal', skip: { reason: 'AccessDenied' } });
    expect(answer.approval).toBeUndefined();
  });
});

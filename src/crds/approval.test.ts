import { expect, it } from 'vitest';
import { AgentRunStatus } from './agent-run.ts';
import { APPROVAL_ARGUMENTS_MAX, APPROVALS_MAX, approvalAnnotation, verdictOn } from './approval.ts';

const ID = '0123456789ab';
const annotated = (text: string, id = ID) => ({
  metadata: { annotations: { [approvalAnnotation(id)]: text } },
});

it.each<[string, object | undefined]>([
  ['approve', { verdict: 'Approved', by: '' }],
  ['approved by ada, note 7', { verdict: 'Approved', by: 'ada, note 7' }],
  ['  Approve ada', { verdict: 'Approved', by: 'ada' }],
  ['deny by bob', { verdict: 'Denied', by: 'bob' }],
  ['denied', { verdict: 'Denied', by: '' }],
  [`deny ${'é'.repeat(300)}`, { verdict: 'Denied', by: '?'.repeat(100) }],
  ['approves', undefined],
  ['do not approve', undefined],
  ['', undefined],
])('the annotation %j answers as it says', (text, verdict) => {
  expect(verdictOn(annotated(text), ID)).toEqual(verdict);
});

it('an annotation answers the question that it names and no other', () => {
  expect(verdictOn(annotated('approve'), 'ba9876543210')).toBeUndefined();
  expect(verdictOn({ metadata: {} }, ID)).toBeUndefined();
});

it('the status has room for as many questions as are asked', () => {
  const one = (index: number) => ({
    ...{ id: index.toString(16).padStart(12, '0'), tool: 'docs_publish', digest: 'a'.repeat(64) },
    ...{
      state: 'Waiting',
      arguments: 'x'.repeat(APPROVAL_ARGUMENTS_MAX),
      requestTime: '2026-03-01T12:00:00Z',
    },
  });
  const approvals = Array.from({ length: APPROVALS_MAX }, (_, index) => one(index));
  expect(AgentRunStatus.safeParse({ approvals }).success).toBe(true);
  expect(AgentRunStatus.safeParse({ approvals: [...approvals, one(99)] }).success).toBe(false);
});

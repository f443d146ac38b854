import { describe, expect, it } from 'vitest';
import {
  aBridge,
  aMergeRequestEvent,
  aServing,
  levels,
  SHA,
  trusting,
  words,
} from '../../../test/builders/bridge.ts';
import type { MergeRequestEvent } from '../events/merge-request.ts';
import type { Facts, WorkflowView } from './decision.ts';
import { decideMergeRequest } from './merge-request.ts';
import { runName } from './run-name.ts';

const BOB = { id: 10, name: 'bob' };
const OTHER = 'b'.repeat(40);
const onMergeRequest = (rest: object = {}) => ({ triggers: [{ event: 'MergeRequest', ...rest }] });
const target = aMergeRequestEvent().mergeRequest;

/** alice is 9. */
const BUMPS = { delivery: { bumps: { labels: ['deps'], authors: ['al*'] } } };

const decide = (
  event: Partial<MergeRequestEvent>,
  spec: WorkflowView['spec'] = {},
  facts: Facts = trusting(),
) =>
  words(
    decideMergeRequest(aMergeRequestEvent(event), aBridge({ facts, workflows: [aServing('review', spec)] })),
  );

describe('a merge request event', () => {
  it.each<[string, Partial<MergeRequestEvent>, WorkflowView['spec'], string]>([
    ['open', {}, {}, 'CreateRun'],
    ['reopen', { action: 'reopen' }, {}, 'CreateRun'],
    ['update', { action: 'update' }, {}, 'CreateRun'],
    ['close', { action: 'close', state: 'closed' }, {}, 'ActionIgnored'],
    ['merge', { action: 'merge', state: 'merged' }, {}, 'ActionIgnored'],
    ['approved', { action: 'approved' }, {}, 'ActionIgnored'],
    ['without an action', { action: '' }, {}, 'ActionIgnored'],
    ['update of a closed one', { action: 'update', state: 'closed' }, {}, 'NotOpen'],
    ['of an older GitLab, which names no state', { state: '' }, {}, 'CreateRun'],
    ['of another project', { project: { id: 1, path: 'group/else' } }, {}, 'NoWorkflow'],
    ['of a fork', { mergeRequest: { ...target, targetProjectId: 2 } }, {}, 'ForeignProject'],
    ['before there is a commit', { sha: undefined }, {}, 'NoHead'],
    ['for a suspended workflow', {}, { suspend: true }, 'Suspended'],
    ['for a workflow with another trigger', {}, { triggers: [{ event: 'Pipeline' }] }, 'NotTriggered'],
    ['of a draft', { draft: true }, {}, 'SkippedDraft'],
    [
      'of a draft, for a workflow that it would not start',
      { draft: true },
      { triggers: [{ event: 'Pipeline' }] },
      'NotTriggered',
    ],
    ['to an ignored branch', {}, onMergeRequest({ ignoreBranches: ['ma*'] }), 'SkippedRule'],
    ['by an ignored user', {}, onMergeRequest({ ignoreUsers: ['al?ce'] }), 'SkippedRule'],
    [
      'with a title that a rule refuses',
      {},
      onMergeRequest({
        rules: [
          { action: 'Deny', title: ['/^fix/i'] },
          { action: 'Deny', title: ['Fix*'] },
        ],
      }),
      'SkippedRule',
    ],
    [
      'with a title that a rule allows',
      {},
      onMergeRequest({ rules: [{ action: 'Allow', title: ['/it$/'] }] }),
      'CreateRun',
    ],
    [
      'with a rule about the status, which it has not',
      {},
      onMergeRequest({ rules: [{ action: 'Allow', status: ['*'] }] }),
      'SkippedRule',
    ],
    [
      'with a broken rule',
      {},
      onMergeRequest({ rules: [{ action: 'Allow', title: ['/(/'] }] }),
      'InvalidRule',
    ],
    ['with the label of a bump', { labels: ['deps'] }, BUMPS, 'CreateRun'],
    ["by a bump's author", { authorId: 9 }, BUMPS, 'CreateRun'],
    ["of a bump's author, moved by somebody else", { authorId: 10 }, BUMPS, 'SkippedRule'],
    ['that is no bump, for a workflow that repairs bumps', { labels: ['docs'] }, BUMPS, 'SkippedRule'],
  ])('%s', (_name, event, spec, expected) => {
    expect(decide(event, spec)).toEqual([expected]);
  });

  it.each<[string, Facts, string]>([
    ['a Reporter', trusting({ access: levels({ 9: 20 }) }), 'AccessDenied'],
    [
      'a Developer, on what a stranger has pushed',
      trusting({ pushAuthor: { kind: 'Ok', value: BOB }, access: levels({ 9: 30, 10: 0 }) }),
      'AccessDenied',
    ],
    ['nobody asked about yet', {}, 'ask PushAuthor,ask Access 9'],
  ])('by %s', (_who, facts, expected) => {
    expect(decide({}, {}, facts).join()).toBe(expected);
  });

  it('of a draft, or that nothing is triggered by, asks nobody', () => {
    expect(decide({ draft: true }, {}, {})).toEqual(['SkippedDraft']);
    expect(decide({}, { triggers: [] }, {})).toEqual(['NotTriggered']);
  });

  it('resolves the threads about earlier commits after a push, of every workflow', () => {
    const workflows = [aServing('review'), aServing('analyze', { triggers: [] })];
    const event = aMergeRequestEvent({ action: 'update', pushed: true });
    const verdict = decideMergeRequest(event, aBridge({ workflows }));
    expect(words(verdict)).toEqual(['ResolveThreads', 'ResolveThreads', 'CreateRun', 'NotTriggered']);
    expect(verdict).toMatchObject({ decisions: [{ exceptSha: SHA }, { exceptSha: SHA }, {}, {}] });
    expect(decide({ action: 'update', pushed: true, draft: true })).toEqual([
      'ResolveThreads',
      'SkippedDraft',
    ]);
  });
});

/** Names of the runs that a row of events asks for, each once, and the reasons of the others. */
function outcomes(...events: readonly Partial<MergeRequestEvent>[]): ReadonlySet<string> {
  return new Set(
    events.flatMap((event) => {
      const verdict = decideMergeRequest(aMergeRequestEvent(event), aBridge());
      return verdict.kind === 'Ask'
        ? ['asked']
        : verdict.decisions.flatMap((decision) => {
            if (decision.kind === 'CreateRun') return [runName(decision.cause)];
            return decision.kind === 'Skip' ? [decision.reason] : [];
          });
    }),
  );
}

it('BR-05: labels and milestones set at the same commit ask for the same run, a push for another', () => {
  const atA = { action: 'update', sha: SHA };
  expect(outcomes({}, {}, atA, atA, { action: 'update', sha: OTHER, pushed: true }).size).toBe(2);
});

it('BR-07: a draft that becomes ready at the same commit asks for its first run', () => {
  const found = [...outcomes({ draft: true }, { action: 'update' })];
  expect(found).toEqual(['SkippedDraft', expect.stringMatching(/^analyze-/)]);
});

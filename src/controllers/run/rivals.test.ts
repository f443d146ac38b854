import { describe, expect, it } from 'vitest';
import { aCondition, aRun } from '../../../test/builders/run.ts';
import type { AgentRun, AgentRunStatus, TriggerKind } from '../../crds/agent-run.ts';
import { isRival, rivalryOf } from './rivals.ts';

interface Given {
  readonly at?: string;
  readonly pipeline?: number;
  readonly phase?: NonNullable<AgentRunStatus['phase']>;
  readonly admitted?: boolean;
}

const anAutomatic = (name: string, { at = '12:00:00', pipeline = 31, phase, admitted = false }: Given = {}) =>
  aRun(
    {
      ...(phase === undefined ? {} : { phase }),
      ...(admitted ? { conditions: [aCondition('Admitted', 'True')] } : {}),
    },
    {
      metadata: { name, uid: name, creationTimestamp: `2026-03-01T${at}Z` },
      spec: { trigger: { kind: 'Pipeline', eventId: String(pipeline) } },
    },
  );
const early: Given = { at: '11:59:00' };
const late: Given = { at: '12:01:00' };
const at = (given: Given, rest: Given = {}): Given => ({ ...given, ...rest });

describe('Supersede', () => {
  it.each<[string, Given, string | undefined]>([
    ['a newer one that was admitted', at(late, { admitted: true }), 'other'],
    [
      'a newer one that was admitted and has ended',
      at(late, { admitted: true, phase: 'Succeeded' }),
      'other',
    ],
    ['a newer one that nobody has looked at', late, undefined],
    ['a newer one that was refused', at(late, { phase: 'Failed' }), undefined],
    ['an older one', at(early, { admitted: true }), undefined],
    ['a later pipeline of the same second', { pipeline: 32, admitted: true }, 'other'],
    ['an earlier pipeline of the same second', { pipeline: 30, admitted: true }, undefined],
  ])('%s', (_name, other, by) => {
    expect(rivalryOf(anAutomatic('run'), 'Supersede', [anAutomatic('other', other)])).toEqual(
      by === undefined ? { kind: 'None' } : { kind: 'Superseded', by },
    );
  });

  it('names the newest', () => {
    const others = [
      anAutomatic('newest', at(late, { admitted: true, pipeline: 40 })),
      anAutomatic('newer', at(late, { admitted: true, pipeline: 33 })),
    ];
    expect(rivalryOf(anAutomatic('run'), 'Supersede', others)).toEqual({ kind: 'Superseded', by: 'newest' });
  });
});

it('of two pushes within one second the one that was taken up later is the newer one', () => {
  const push = (name: string, ms: number) =>
    aRun(
      { startTime: `2026-03-01T12:00:00.${ms}Z`, conditions: [aCondition('Admitted', 'True')] },
      {
        metadata: { name, uid: name, creationTimestamp: '2026-03-01T12:00:00Z' },
        spec: { trigger: { kind: 'MergeRequest' } },
      },
    );
  const [older, newer] = [push('z', 100), push('a', 300)];
  expect(rivalryOf(older, 'Supersede', [newer])).toEqual({ kind: 'Superseded', by: 'a' });
  expect(rivalryOf(newer, 'Supersede', [older])).toEqual({ kind: 'None' });
});

describe('Queue', () => {
  it.each<[string, Given, Given, string | undefined]>([
    ['behind an older one', {}, early, 'other'],
    ['not behind an older one that has ended', {}, at(early, { phase: 'Failed' }), undefined],
    ['not behind a newer one', {}, late, undefined],
    ['behind a newer one that has begun', {}, at(late, { phase: 'Running' }), 'other'],
    ['behind nobody once it has begun itself', { phase: 'Running' }, early, undefined],
  ])('%s', (_name, own, other, behind) => {
    expect(rivalryOf(anAutomatic('run', own), 'Queue', [anAutomatic('other', other)])).toEqual(
      behind === undefined ? { kind: 'None' } : { kind: 'Behind', run: behind },
    );
  });
});

describe('Skip', () => {
  it.each<[string, Given, Given, string | undefined]>([
    ['while an older one is under way', {}, early, 'other'],
    ['not after an older one has ended', {}, at(early, { phase: 'Succeeded', admitted: true }), undefined],
    ['not for a newer one', {}, late, undefined],
    ['for a newer one that was faster', {}, at(late, { admitted: true, phase: 'Running' }), 'other'],
    ['not once it was admitted', { admitted: true }, early, undefined],
  ])('%s', (_name, own, other, of) => {
    expect(rivalryOf(anAutomatic('run', own), 'Skip', [anAutomatic('other', other)])).toEqual(
      of === undefined ? { kind: 'None' } : { kind: 'Duplicate', of },
    );
  });
});

describe('rivals', () => {
  const run = anAutomatic('run');
  const by = (kind: TriggerKind): AgentRun =>
    aRun({}, { metadata: { uid: kind }, spec: { trigger: { kind } } });

  it.each<[string, AgentRun, boolean]>([
    ['another automatic run on the merge request', anAutomatic('other'), true],
    ['one of a push', by('MergeRequest'), true],
    ['itself', run, false],
    ['a run by hand', by('Manual'), false],
    ['a run by command', by('Command'), false],
    ['a reply', by('Reply'), false],
    ['one on another merge request', elsewhere({ mergeRequest: { project: 'group/app', iid: 43 } }), false],
    ['one on another project', elsewhere({ mergeRequest: { project: 'group/else', iid: 42 } }), false],
    ['one of another workflow', elsewhere({ workflowRef: { name: 'review' } }), false],
  ])('%s', (_name, other, expected) => {
    expect(isRival(run, other)).toBe(expected);
    expect(isRival(other, run)).toBe(expected);
  });

  function elsewhere(spec: Partial<AgentRun['spec']>): AgentRun {
    return aRun({}, { metadata: { uid: 'else' }, spec: { trigger: { kind: 'Pipeline' }, ...spec } });
  }
});

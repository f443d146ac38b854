import { describe, expect, it } from 'vitest';
import { evaluateTrigger, type Trigger, type TriggerSubject } from './rules.ts';

const trigger = (rest: Partial<Trigger>): Trigger => ({ event: 'Pipeline', ...rest });
const subject = (rest: Partial<TriggerSubject> = {}): TriggerSubject => ({
  status: 'failed',
  user: 'alice',
  targetBranch: 'main',
  title: 'Fix the cache',
  ...rest,
});

describe('without rules', () => {
  it.each([
    ['failed', 'Allowed'],
    ['success', 'Denied'],
    ['running', 'Denied'],
    ['canceled', 'Denied'],
    ['Failed', 'Denied'],
  ] as const)('a pipeline that is %s: %s', (status, kind) => {
    expect(evaluateTrigger(trigger({}), subject({ status })).kind).toBe(kind);
    expect(evaluateTrigger(trigger({ rules: [] }), subject({ status })).kind).toBe(kind);
  });
});

describe('the ignore lists', () => {
  const allowAll = [{ action: 'Allow' as const }];
  it.each([
    ['a user', { ignoreUsers: ['*-bot'], rules: allowAll }, { user: 'renovate-bot' }],
    ['a target branch', { ignoreBranches: ['legacy'], rules: allowAll }, { targetBranch: 'legacy' }],
  ])('deny %s before any rule is asked', (_what, list, given) => {
    expect(evaluateTrigger(trigger(list), subject()).kind).toBe('Allowed');
    expect(evaluateTrigger(trigger(list), subject(given)).kind).toBe('Denied');
  });
});

describe('rules', () => {
  it.each<[string, Trigger['rules'], Partial<TriggerSubject>, string]>([
    [
      'the first match wins when it denies',
      [{ action: 'Deny', user: ['alice'] }, { action: 'Allow' }],
      {},
      'Denied',
    ],
    [
      'the first match wins when it allows',
      [{ action: 'Allow' }, { action: 'Deny', user: ['alice'] }],
      {},
      'Allowed',
    ],
    ['none matches: denied', [{ action: 'Allow', branch: ['release-*'] }], {}, 'Denied'],
    [
      'none matches: denied also when all of them deny',
      [{ action: 'Deny', branch: ['release-*'] }],
      {},
      'Denied',
    ],
    ['a rule without status allows a success too', [{ action: 'Allow' }], { status: 'success' }, 'Allowed'],
    [
      'all conditions of a rule must hold',
      [{ action: 'Allow', status: ['failed'], user: ['bob'] }],
      {},
      'Denied',
    ],
    ['one pattern of a condition is enough', [{ action: 'Allow', user: ['bob', 'al*'] }], {}, 'Allowed'],
    ['a branch that is none of them', [{ action: 'Allow', branch: ['Main', 'mai'] }], {}, 'Denied'],
    ['an empty list holds never', [{ action: 'Allow', user: [] }], {}, 'Denied'],
    [
      'a condition on a missing user does not hold',
      [{ action: 'Allow', user: ['*'] }],
      { user: undefined },
      'Denied',
    ],
    ['a title by glob is case sensitive', [{ action: 'Allow', title: ['fix*'] }], {}, 'Denied'],
    ['a title by glob', [{ action: 'Allow', title: ['Fix*'] }], {}, 'Allowed'],
    [
      'a title by regular expression need not match it all',
      [{ action: 'Allow', title: ['/c.che/'] }],
      {},
      'Allowed',
    ],
    [
      'a title by regular expression that does not match',
      [{ action: 'Allow', title: ['/^cache/'] }],
      {},
      'Denied',
    ],
    ['a single slash is a glob', [{ action: 'Allow', title: ['/'] }], { title: '/' }, 'Allowed'],
    ['a broken regular expression', [{ action: 'Allow', title: ['/(/'] }], {}, 'Invalid'],
    [
      'a broken one is not looked at when another condition fails',
      [{ action: 'Allow', user: ['bob'], title: ['/(/'] }],
      {},
      'Denied',
    ],
  ])('%s', (_name, rules, given, kind) => {
    expect(evaluateTrigger(trigger({ rules }), subject(given)).kind).toBe(kind);
  });

  it('a regular expression that backtracks without end is stopped and named', () => {
    const verdict = evaluateTrigger(
      trigger({ rules: [{ action: 'Allow', title: ['/^(a+)+$/'] }] }),
      subject({ title: `${'a'.repeat(200)}!` }),
    );
    expect(verdict).toMatchObject({ kind: 'Invalid', message: expect.stringContaining('rules[0].title') });
  });
});

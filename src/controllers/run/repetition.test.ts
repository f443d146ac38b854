import { describe, expect, it } from 'vitest';
import { aCondition, aRun } from '../../../test/builders/run.ts';
import type { AgentThreads } from '../../notes/port.ts';
import { type RepetitionInput, repetitionOf } from './repetition.ts';

const SHA = 'a'.repeat(40);
const OTHER = 'b'.repeat(40);
const run = aRun();
const aRival = (sha: string, admitted = true) =>
  aRun(
    { sha, conditions: [aCondition('Admitted', admitted ? 'True' : 'False')] },
    { metadata: { name: 'rival', uid: 'rival' } },
  );
const threads = (count: number, ...commits: [string, string][]): AgentThreads => ({
  count,
  commits: new Map(commits.map(([sha, uid]) => [sha, new Set([uid])])),
});
const reason = (rest: Partial<RepetitionInput>) =>
  repetitionOf({ run, sha: SHA, limit: 3, rivals: [], threads: undefined, ...rest })?.reason;

describe('an automatic run', () => {
  it.each<[string, Partial<RepetitionInput>, string | undefined]>([
    ['on a commit that nobody has looked at', {}, undefined],
    ['on a commit that a run looks at', { rivals: [aRival(SHA)] }, 'SkippedDuplicate'],
    ['on a commit that a refused run would have looked at', { rivals: [aRival(SHA, false)] }, undefined],
    ['on another commit than a run looks at', { rivals: [aRival(OTHER)] }, undefined],
    ['on a commit that a note tells of', { threads: threads(1, [SHA, 'gone']) }, 'SkippedDuplicate'],
    [
      'on a commit that its own note tells of',
      { threads: threads(1, [SHA, run.metadata.uid ?? '']) },
      undefined,
    ],
    ['on another commit than a note tells of', { threads: threads(1, [OTHER, 'gone']) }, undefined],
    ['below the limit', { threads: threads(2) }, undefined],
    ['at the limit, by notes', { threads: threads(3) }, 'RateLimited'],
    ['at the limit, by runs', { rivals: [aRival(OTHER), aRival(OTHER), aRival(OTHER)] }, 'RateLimited'],
    [
      'at the limit, on a commit that was looked at',
      { threads: threads(3, [SHA, 'gone']) },
      'SkippedDuplicate',
    ],
  ])('%s', (_name, input, expected) => {
    expect(reason(input)).toBe(expected);
  });
});

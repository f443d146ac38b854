import { describe, expect, it } from 'vitest';
import { aRun } from '../../../test/builders/run.ts';
import type { AgentRun, AgentRunStatus } from '../../crds/agent-run.ts';
import { runBefore, runUntold } from './turn.ts';

interface Reply {
  readonly at?: string;
  readonly noteId?: number;
  readonly phase?: NonNullable<AgentRunStatus['phase']>;
}

const reply = (name: string, { at = '12:00:00', noteId, phase = 'Claiming' }: Reply = {}): AgentRun =>
  aRun(
    { phase },
    {
      metadata: { name, uid: name, creationTimestamp: `2026-03-01T${at}Z` },
      spec: {
        sessionRef: { name: 's-1' },
        trigger: { kind: 'Reply', ...(noteId === undefined ? {} : { noteId }) },
      },
    },
  );

const waitsFor = (run: AgentRun, ...others: AgentRun[]) => runBefore(run, [run, ...others])?.metadata.name;

describe('the turns of a session', () => {
  it('go by the time of creation', () => {
    const first = reply('z', { at: '11:59:59' });
    const second = reply('a');
    expect(waitsFor(first, second)).toBeUndefined();
    expect(waitsFor(second, first)).toBe('z');
  });

  it('go by the notes within one second', () => {
    const [first, second] = [reply('z', { noteId: 7 }), reply('a', { noteId: 8 })];
    expect(waitsFor(first, second)).toBeUndefined();
    expect(waitsFor(second, first)).toBe('z');
  });

  it('name the run that comes next of all, for many', () => {
    const runs = [reply('c'), reply('a'), reply('b')] as const;
    expect(runs.map((run) => runBefore(run, runs)?.metadata.name)).toEqual(['a', undefined, 'a']);
  });

  it.each(['Succeeded', 'Failed', 'Cancelled', 'Skipped'] as const)('pass from a run that is %s', (phase) => {
    expect(waitsFor(reply('b'), reply('a', { phase }))).toBeUndefined();
  });

  it('pass when the run before is gone', () => {
    expect(waitsFor(reply('b'))).toBeUndefined();
  });

  it.each(['Running', 'Finishing'] as const)('are not taken from a run that is %s', (phase) => {
    // Both were created within a second; the later one was seen first and has begun.
    const [first, begun] = [reply('a'), reply('b', { phase })];
    expect(waitsFor(first, begun)).toBe('b');
    expect(waitsFor(begun, first)).toBeUndefined();
  });
});

describe('the notes of a session', () => {
  const note = { discussionId: 'd', noteId: 1, url: 'https://gitlab.test/n' };
  const told = (name: string): AgentRun => {
    const run = reply(name);
    return { ...run, status: { ...run.status, note } };
  };
  const silent = (name: string): AgentRun => {
    const run = reply(name);
    return { ...run, spec: { ...run.spec, publish: { kind: 'None' } } };
  };
  const untold = (run: AgentRun, ...others: AgentRun[]) => runUntold(run, [run, ...others])?.metadata.name;

  it('stand in the order of its replies: each waits for those before it', () => {
    expect(untold(reply('c'), reply('a'), reply('b'))).toBe('a');
    expect(untold(reply('c'), told('a'), reply('b'))).toBe('b');
    expect(untold(reply('c'), told('a'), told('b'))).toBeUndefined();
    expect(untold(reply('a'), reply('b'))).toBeUndefined();
  });

  it('do not wait for a run that posts none', () => {
    expect(untold(reply('b'), silent('a'))).toBeUndefined();
  });
});

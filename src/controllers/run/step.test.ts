import { describe, expect, it } from 'vitest';
import { aCondition, aRun } from '../../../test/builders/run.ts';
import { aStep } from '../../../test/builders/step.ts';
import { AgentRunStatus } from '../../crds/agent-run.ts';
import { nextStatus, sessionIdOf, withOutcome } from './step.ts';

const ready = { type: 'SandboxReady', status: 'True', reason: 'Claimed', message: 'Pod p' } as const;

describe('nextStatus', () => {
  it('keeps what it does not change, and the conditions in their order', () => {
    const run = aRun({
      phase: 'Claiming',
      iterations: 3,
      conditions: [aCondition('Admitted', 'True'), aCondition('NotePosted', 'True')],
    });
    const status = nextStatus(aStep(run).context, { phase: 'Running' }, ready);
    expect(status).toMatchObject({ phase: 'Running', iterations: 3, observedGeneration: 1 });
    expect(status.conditions?.map(({ type }) => type)).toEqual(['Admitted', 'SandboxReady', 'NotePosted']);
  });

  it('redacts what conditions say, and cuts it to what the API server takes', () => {
    const { context } = aStep(aRun(), { redact: (text) => text.replaceAll('hunter2', '***') });
    const long = nextStatus(context, {}, { ...ready, message: `hunter2 ${'😀'.repeat(3000)}` });
    expect(long.conditions?.[0]?.message).toMatch(/^\*\*\* 😀/);
    expect([...(long.conditions?.[0]?.message ?? '')].length).toBeLessThanOrEqual(1024);
  });
});

describe('withOutcome', () => {
  it('decides the end once, in words that the API server takes whatever they are', () => {
    const message = `${'é😀'.repeat(2000)} hunter2`;
    const { context } = aStep(aRun({ phase: 'Running' }), {
      redact: (text) => text.replaceAll('hunter2', ''),
    });
    const { status } = withOutcome(context, 'ModelError', message);
    expect(status).toMatchObject({
      phase: 'Finishing',
      outcome: { reason: 'ModelError', time: '2026-03-01T12:00:00.000Z' },
      conditions: [{ type: 'Succeeded', status: 'Unknown', reason: 'ModelError' }],
    });
    // No half of a pair is left where it was cut.
    expect(status?.outcome?.message?.isWellFormed()).toBe(true);
    expect(() => AgentRunStatus.parse(status)).not.toThrow();
  });
});

describe('sessionIdOf', () => {
  it('is the session that the run goes on with, else its own uid', () => {
    expect(sessionIdOf(aRun())).toBe('11111111-2222-4333-8444-555555555555');
    expect(sessionIdOf(aRun({}, { spec: { sessionRef: { name: 's-1' } } }))).toBe('s-1');
  });
});

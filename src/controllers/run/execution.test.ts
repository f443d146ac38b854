import { describe, expect, it } from 'vitest';
import { Execution, StopReason, type Work } from './execution.ts';
import type { LoopProgress, RunResult } from './result.ts';

const result: RunResult = {
  ...{ version: 1, reason: 'Succeeded', message: 'm', text: 't', reported: true, transcriptExcerpt: '' },
};
const progress: LoopProgress = {
  checkpoint: { sequence: 1, key: 'k' },
  iterations: 1,
  toolCalls: 0,
  usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 },
  costUSD: undefined,
};

/** Work that ends with `result` when it is stopped. */
const untilStopped: Work = (signal) =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(result), { once: true }));

describe('an execution', () => {
  it('tells each report and its end', async () => {
    const states: string[] = [];
    const gate = Promise.withResolvers<RunResult>();
    const execution = new Execution(
      (_, report) => {
        queueMicrotask(() => report(progress));
        return gate.promise;
      },
      () => states.push(`${execution.state} ${execution.progress?.checkpoint?.sequence}`),
    );
    expect(execution.state).toBe('Running');
    await Promise.resolve();
    gate.resolve(result);
    await expect.poll(() => execution.state).toBe('Finished');
    expect(states).toEqual(['Running 1', 'Finished 1']);
    expect(execution.result).toBe(result);
  });

  it.each(['Cancelled', 'Timeout'] as const)(
    'keeps what a loop gives that was stopped as %s',
    async (kind) => {
      const execution = new Execution(untilStopped, () => undefined);
      await execution.stop(new StopReason(kind, 'stop'));
      expect(execution.result).toBe(result);
    },
  );

  it.each(['Fenced', 'Shutdown'] as const)(
    'throws away what a loop gives that was stopped as %s: another holder goes on',
    async (kind) => {
      const execution = new Execution(untilStopped, () => undefined);
      await execution.stop(new StopReason(kind, 'stop'));
      expect(execution.state).toBe('Discarded');
      expect(execution.result).toBeUndefined();
    },
  );

  it('ends quietly when its work rejects', async () => {
    const execution = new Execution(
      () => Promise.reject(new Error('no')),
      () => undefined,
    );
    await execution.stop(new StopReason('Cancelled', 'stop'));
    expect(execution.state).toBe('Discarded');
  });

  it('tells a deadline from a cancellation by the name that the loop looks at', () => {
    expect(new StopReason('Timeout', 'm').name).toBe('TimeoutError');
    expect(new StopReason('Cancelled', 'm').name).not.toBe('TimeoutError');
  });
});

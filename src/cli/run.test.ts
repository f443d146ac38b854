import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { aRun } from '../../test/builders/run.ts';
import { createOpenAiModel } from '../agent/models/openai/adapter.ts';
import { effectiveRun } from '../controllers/run/effective.ts';
import { createHttpClient, type HttpClient } from '../http/client.ts';
import { systemClock } from '../kube/clock.ts';
import { SandboxUnavailableError } from '../sandbox/port.ts';
import { type RunParts, runToEnd } from './run.ts';
import { exitCodeOf } from './run-output.ts';

let http: HttpClient;
beforeEach(() => {
  http = createHttpClient();
});
afterEach(() => http.close());

/** A run that waits for its sandbox; the model is never reached. */
function parts(openSandbox: RunParts['openSandbox'], timeoutMs = 60_000): RunParts {
  const run = aRun();
  return {
    ...{ run, openSandbox, sessionId: 's', prompt: 'p', tools: [], clock: systemClock },
    ...{ note: undefined, sessions: undefined, earlier: undefined },
    effective: { ...effectiveRun(run, undefined), timeoutMs },
    model: createOpenAiModel({ name: 'm', baseUrl: 'http://127.0.0.1:1/v1', http }),
    progress: { event: () => undefined, say: () => undefined, done: () => undefined },
    redact: (text) => text.replaceAll('secret', '[redacted]'),
  };
}
const never: RunParts['openSandbox'] = async (signal) => {
  signal.throwIfAborted();
  return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
};

describe('a run that gets no sandbox', () => {
  it('within its time says what it waited for', async () => {
    const end = await runToEnd(parts(never, 1_000), new AbortController().signal);
    expect(end).toMatchObject({
      reason: 'Timeout',
      text: "The run's time, 1s, was over before the model was asked: it waited for its sandbox.",
      iterations: 0,
      reported: false,
    });
    expect(exitCodeOf(end)).toBe(5);
  });

  it('until it is interrupted is cancelled', async () => {
    const stop = new AbortController();
    const ending = runToEnd(parts(never), stop.signal);
    stop.abort(new Error('interrupted by SIGINT'));
    const end = await ending;
    expect(end).toMatchObject({ reason: 'Cancelled', text: 'Interrupted before the model was asked.' });
    expect(exitCodeOf(end)).toBe(130);
  });

  it('since none can be had says why, without the secrets in it', async () => {
    const none = () => Promise.reject(new SandboxUnavailableError('no image secret'));
    const end = await runToEnd(parts(none), new AbortController().signal);
    expect(end).toMatchObject({ reason: 'SandboxUnavailable', text: 'no image [redacted]' });
    expect(exitCodeOf(end)).toBe(4);
  });
});

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Journals } from '../../test/builders/journals.ts';
import { told } from '../../test/builders/told.ts';
import { countBreakpoints } from '../../test/fakes/anthropic/check.ts';
import { type AnthropicServer, startAnthropic } from '../../test/fakes/anthropic/server.ts';
import {
  type Fault,
  type GeminiServer,
  type ScriptedTurn,
  startGemini,
} from '../../test/fakes/gemini/server.ts';
import { type LocalSandbox, startLocalSandbox } from '../../test/fakes/local-sandbox.ts';
import { type OpenAiServer, startOpenAi } from '../../test/fakes/openai/server.ts';
import { createHttpClient, type HttpClient } from '../http/client.ts';
import type { Clock } from './clock.ts';
import type { LoopOptions, LoopResult } from './loop.ts';
import { createAnthropicVertexModel } from './models/anthropic/adapter.ts';
import { createGeminiModel } from './models/gemini/adapter.ts';
import { createOpenAiModel } from './models/openai/adapter.ts';
import type { Model } from './models/port.ts';
import { createRegistry } from './tools/registry.ts';

let http: HttpClient;
let sandbox: LocalSandbox;
let waits: number[];
const journals = new Journals();

beforeEach(async () => {
  http = createHttpClient();
  sandbox = await startLocalSandbox();
  waits = [];
});
afterEach(async () => {
  await http.close();
  await sandbox.cleanup();
  await journals.replayAll();
});

/** Does not wait, but remembers how long it should have. */
const clock: Clock = {
  now: () => Date.UTC(2026, 11, 1),
  sleep: async (milliseconds) => void waits.push(milliseconds),
};

async function run(model: Model, more: Partial<LoopOptions> = {}): Promise<LoopResult> {
  return journals.run({
    model,
    system: 'You are tested.',
    contents: [model.makeUserContent('{"iid":1}')],
    tools: createRegistry({ tools: [], sandbox }),
    limits: { maxIterations: 10, contextTokens: 60_000 },
    signal: new AbortController().signal,
    clock,
    ...more,
  });
}

const exec: ScriptedTurn = { toolCalls: [{ name: 'sandbox_exec', args: { command: 'echo found' } }] };
const turns =
  (...list: ScriptedTurn[]) =>
  (_request: unknown, call: number): ScriptedTurn =>
    list[Math.min(call, list.length) - 1] ?? {};

describe('with Gemini', () => {
  let server: GeminiServer;
  let model: Model;
  const NAME = 'gemini-3.1-pro-preview';

  async function start(...list: ScriptedTurn[]): Promise<void> {
    server = await startGemini({ scripts: { [NAME]: turns(...list) }, apiKey: 'key' });
    model = createGeminiModel({
      name: NAME,
      http,
      service: { kind: 'DeveloperApi', apiKey: 'key', origin: server.origin },
    });
  }
  afterEach(async () => {
    expect(server.refusals).toEqual([]);
    await server.stop();
  });

  const candidate = (fields: object): ScriptedTurn => ({ raw: { candidates: [fields] } });
  const lastText = (index: number) => server.requests[index]?.contents.at(-1)?.parts.at(-1)?.text ?? '';

  test('tools run and the report comes, with tokens and cost', async () => {
    const usage = { prompt: 1000, completion: 100, cached: 400 };
    await start({ ...exec, usage }, { text: '# Report', usage });
    const result = await run(model);
    expect(result).toMatchObject({ kind: 'Answered', text: '# Report', toolCalls: 1 });
    // Twice: 600 at 2, 400 at 0.20 and 100 out at 12.
    expect(result.costUsd).toBeCloseTo((2 * (600 * 2 + 400 * 0.2 + 100 * 12)) / 1e6, 12);
    expect(JSON.stringify(server.requests[1])).toContain('"stdout":"found\\n"');
  });

  test('BR-19: malformed calls are asked again with a nudge, and nothing of them is kept', async () => {
    const malformed = candidate({
      finishReason: 'MALFORMED_FUNCTION_CALL',
      finishMessage: 'bad call',
      index: 0,
    });
    await start(malformed, malformed, malformed);
    const result = await run(model);
    expect(result).toMatchObject({ kind: 'NoAnswer', reason: 'noAnswer', iterations: 3 });
    expect(result.text).toMatch(/gave no answer: MALFORMED_FUNCTION_CALL: bad call/);
    expect([0, 1, 2].map((index) => /could not be read/.test(lastText(index)))).toEqual([false, true, true]);
    expect(result.contents).toEqual([{ role: 'user', parts: [{ text: '{"iid":1}' }] }]);
    expect(told(result)).toMatchObject({
      phase: 'Failed',
      reason: 'ModelNoAnswer',
      note: expect.stringMatching(
        /^Hummingbird analysis failed\.\n\nReason: ModelNoAnswer\. The model gave no answer/,
      ),
    });
  });

  test('BR-20: empty answers between tool calls are survived, and counted anew after each', async () => {
    const empty = candidate({ content: { role: 'model', parts: [] }, finishReason: 'STOP' });
    await start(exec, empty, exec, empty, empty, { text: '# Report' });
    const result = await run(model);
    expect(result).toMatchObject({ kind: 'Answered', text: '# Report', iterations: 6 });
    expect(server.requests).toHaveLength(6);
    expect(told(result)).toMatchObject({ phase: 'Succeeded', note: expect.stringMatching(/^# Report/) });
  });

  test.each([
    ['a: a blocked prompt', { raw: { promptFeedback: { blockReason: 'SAFETY' } } }, /SAFETY/],
    ['b: a recitation', candidate({ finishReason: 'RECITATION' }), /RECITATION/],
  ] as [string, ScriptedTurn, RegExp][])(
    'BR-21 %s ends without an answer and names the reason',
    async (_name, turn, reason) => {
      await start(turn);
      const result = await run(model);
      expect(result).toMatchObject({ kind: 'NoAnswer', reason: 'blocked', iterations: 1 });
      expect(result.text).toMatch(reason);
      expect(result.detail).toMatch(reason);
      expect(told(result)).toMatchObject({
        phase: 'Failed',
        reason: 'ModelNoAnswer',
        message: expect.stringMatching(reason),
        note: expect.stringMatching(/no answer|refused to answer/i),
      });
    },
  );

  test('BR-21 c: text that the output limit cut is posted and marked as cut', async () => {
    await start({ text: 'half', finishReason: 'MAX_TOKENS' });
    const result = await run(model);
    expect(result).toMatchObject({ kind: 'Partial', reason: 'outputLimit' });
    expect(result.text).toMatch(/^half\n\n_.*cut/);
    expect(told(result).note).toMatch(/half\n\n_The answer was cut/);
  });

  const quota = (details: object[]): Fault => ({
    kind: 'Status',
    status: 429,
    body: { error: { code: 429, message: 'Quota exceeded.', status: 'RESOURCE_EXHAUSTED', details } },
  });

  test('BR-23: the wait that the service asks for is kept, once', async () => {
    await start({ text: '# Report' });
    server.faults.push(quota([{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '48s' }]));
    expect(await run(model)).toMatchObject({ kind: 'Answered' });
    expect(waits).toEqual([48_000]);
    expect(server.faults).toEqual([]);
  });

  test('BR-23: without a wait that the service asks for it is 5, 10, 20 and 40 s', async () => {
    await start({ text: '# Report' });
    server.faults.push(...Array.from({ length: 4 }, () => quota([])));
    expect(await run(model)).toMatchObject({ kind: 'Answered', iterations: 1 });
    expect(waits).toEqual([5_000, 10_000, 20_000, 40_000]);
  });

  test('BR-24: an exhausted quota ends after 5 calls and 75 s, and what was found is kept', async () => {
    await start(exec);
    const help = quota([{ '@type': 'type.googleapis.com/google.rpc.Help', links: [{ url: 'https://x' }] }]);
    server.faults.push(undefined, ...Array.from({ length: 9 }, () => help));
    const result = await run(model);
    expect(result).toMatchObject({ kind: 'Failed', reason: 'modelError', modelStatus: 429 });
    expect(result.text).toMatch(/rate limit or quota is used up/);
    expect(waits).toEqual([5_000, 10_000, 20_000, 40_000]);
    expect(server.faults).toHaveLength(4);
    expect(result.contents).toHaveLength(3);
    expect(JSON.stringify(model.toCanonical(result.contents))).toContain('found');
    expect(told(result)).toMatchObject({
      phase: 'Failed',
      reason: 'ModelError',
      message: expect.stringMatching(/rate limit or quota is used up/),
      note: expect.stringMatching(/rate limit or quota is used up/),
    });
  });

  test('the last turn has no tools although the history holds calls', async () => {
    await start(exec, { text: '# Report' });
    const limits = { maxIterations: 2, contextTokens: 60_000 };
    expect(await run(model, { limits })).toMatchObject({ kind: 'Partial', text: '# Report' });
    expect(server.requests[1]).not.toHaveProperty('tools');
    expect(lastText(1)).toMatch(/last turn/);
  });
});

describe('with Claude', () => {
  let server: AnthropicServer;
  let model: Model;
  const NAME = 'claude-sonnet-4-6';

  async function start(...list: ScriptedTurn[]): Promise<void> {
    const vertex = { isToken: (token: string) => token === 'token', project: 'p', location: 'global' };
    server = await startAnthropic({ scripts: { [NAME]: turns(...list) }, vertex });
    model = createAnthropicVertexModel({
      name: NAME,
      http,
      place: { project: 'p', location: 'global', origin: server.origin },
      access: { project: async () => 'p', token: async () => 'token' },
    });
  }
  afterEach(async () => {
    expect(server.refusals).toEqual([]);
    await server.stop();
  });

  test('tools run and the report comes; cached tokens are counted once and priced as cached', async () => {
    await start(exec, exec, { text: '# Report' });
    const result = await run(model);
    expect(result).toMatchObject({ kind: 'Answered', text: '# Report', toolCalls: 2 });
    const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = result.usage;
    expect(cacheReadTokens).toBeGreaterThan(0);
    const uncached = inputTokens - cacheReadTokens - cacheWriteTokens;
    const cost = uncached * 3 + cacheReadTokens * 0.3 + cacheWriteTokens * 3.75 + outputTokens * 15;
    expect(result.costUsd).toBeCloseTo(cost / 1e6, 12);
  });

  test('BR-27: a run to its limit never sends more than 4 breakpoints, and keeps none', async () => {
    await start(exec);
    const result = await run(model, { limits: { maxIterations: 10, contextTokens: 60_000 } });
    expect(result).toMatchObject({ kind: 'NoAnswer', reason: 'iterationLimit', iterations: 10 });
    expect(server.requests.map(countBreakpoints)).toEqual([1, 2, 2, 2, 2, 2, 2, 1, 1, 1]);
    const warned = server.requests.at(-1)?.messages.at(-1)?.content.at(-1);
    expect(warned).toMatchObject({ type: 'text', text: expect.stringContaining('last turn') });
    expect(warned).not.toHaveProperty('cache_control');
    expect(JSON.stringify([result.contents, model.toCanonical(result.contents)])).not.toContain(
      'cache_control',
    );
  });

  test('an overloaded service is asked again', async () => {
    await start({ text: '# Report' });
    server.faults.push({ kind: 'Status', status: 529 }, { kind: 'Status', status: 529 });
    expect(await run(model)).toMatchObject({ kind: 'Answered' });
    expect(waits).toEqual([5_000, 10_000]);
  });
});

describe('with an OpenAI-compatible server', () => {
  let server: OpenAiServer;
  let model: Model;
  afterEach(async () => {
    expect(server.refusals).toEqual([]);
    await server.stop();
  });
  async function start(...list: ScriptedTurn[]): Promise<void> {
    server = await startOpenAi({ scripts: { m: turns(...list) } });
    model = createOpenAiModel({ name: 'm', baseUrl: server.url, http });
  }

  test('BR-28: arguments as an object, no id and null content run, and go back as one text with one id', async () => {
    const call = { function: { name: 'sandbox_exec', arguments: { command: 'ls; echo listed' } } };
    const message = { role: 'assistant', content: null, tool_calls: [call] };
    await start(
      { raw: { choices: [{ index: 0, message, finish_reason: 'tool_calls' }] } },
      { text: '# Report' },
    );
    const result = await run(model);
    expect(result).toMatchObject({ kind: 'Answered', toolCalls: 1 });
    expect(sandbox.commands.join()).toContain('ls; echo listed');

    const [asked, answered] = server.requests[1]?.messages.slice(2) ?? [];
    const text = '{"command":"ls; echo listed"}';
    expect(asked).toMatchObject({
      role: 'assistant',
      content: null,
      tool_calls: [{ type: 'function', function: { name: 'sandbox_exec', arguments: text } }],
    });
    const id = asked?.role === 'assistant' ? asked.tool_calls?.[0]?.id : undefined;
    expect(id).toMatch(/./);
    expect(answered).toMatchObject({ role: 'tool', tool_call_id: id });
    expect(String(answered?.content)).toContain('listed');
    // As a session keeps it, for whichever provider comes next.
    const [, kept, answer] = model.toCanonical(result.contents);
    expect(kept).toMatchObject({ tool_calls: [{ id, function: { arguments: text } }] });
    expect(answer).toMatchObject({ role: 'tool', tool_call_id: id, name: 'sandbox_exec' });
  });

  test('BR-29: no answer is asked for in parts, so no name can be glued together from them', async () => {
    await start(exec, { text: '' }, { text: '# Report' });
    expect(await run(model)).toMatchObject({ kind: 'Answered', iterations: 3 });
    for (const request of server.requests) {
      expect(request).not.toHaveProperty('stream', true);
      const empty = request.messages.filter(
        (message) => message.role === 'assistant' && !message.content && !message.tool_calls,
      );
      expect(empty).toEqual([]);
    }
  });
});

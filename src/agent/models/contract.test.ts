import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Fault, ScriptedTurn } from '../../../test/fakes/model-http.ts';
import { PROVIDERS, type ProviderUnderTest } from '../../../test/fakes/providers.ts';
import { createHttpClient, type HttpClient } from '../../http/client.ts';
import { defineParameters } from '../tools/parameters.ts';
import type { Contents, GenerateRequest, Model, ToolDefinition, ToolResult } from './port.ts';

const tool: ToolDefinition = {
  name: 'run',
  description: 'runs a command',
  parameters: defineParameters(
    z.strictObject({
      cmd: z.string().min(1).max(100).regex(/^\w/).default('ls').describe('what to run'),
      lines: z.int().positive().optional(),
      mode: z.union([z.literal('a'), z.literal('b')]).optional(),
      env: z.record(z.string(), z.string()).optional(),
    }),
  ).schema,
  notes: 'never sent with the definition',
};
const nullary: ToolDefinition = {
  name: 'look',
  description: 'looks',
  parameters: { type: 'object', properties: {} },
};

const callTwice: ScriptedTurn = {
  text: 'Looking.',
  toolCalls: [
    { name: 'run', args: { cmd: 'ls' } },
    { name: 'run', args: { cmd: 'pwd', lines: 2 } },
  ],
};
const answered = (model: Model, results: readonly Pick<ToolResult, 'call'>[]) =>
  model.makeToolResponses(results.map(({ call }, index) => ({ call, result: { stdout: `out ${index}` } })));

describe.each(PROVIDERS)('$name', ({ words, start }) => {
  let http: HttpClient;
  let provider: ProviderUnderTest;
  let model: Model;
  let turns: ScriptedTurn[];

  beforeEach(async () => {
    http = createHttpClient();
    turns = [];
    provider = await start(http, (call) => turns[call - 1] ?? { text: 'ok' });
    model = provider.model;
  });
  afterEach(async () => {
    await http.close();
    await provider.stop();
  });

  const ask = (contents: Contents, more: Partial<GenerateRequest> = {}, of: Model = model) =>
    of.generate({ system: 'sys', contents, tools: [tool, nullary], ...more });
  const user = (text: string) => model.makeUserContent(text);

  test('calls side by side are answered in order and the conversation goes on', async () => {
    turns = [callTwice, { toolCalls: [{ name: 'look', args: {} }] }, { text: 'done' }];
    const contents: unknown[] = [user('hi')];
    const first = await ask(contents);
    expect(first).toMatchObject({ text: 'Looking.', finishReason: 'ToolCalls' });
    expect(first.toolCalls.map(({ name, arguments: args }) => [name, args])).toEqual([
      ['run', { cmd: 'ls' }],
      ['run', { cmd: 'pwd', lines: 2 }],
    ]);
    contents.push(
      first.content,
      ...answered(
        model,
        first.toolCalls.map((call) => ({ call })),
      ),
    );
    const second = await ask(contents);
    contents.push(
      second.content,
      ...answered(
        model,
        second.toolCalls.map((call) => ({ call })),
      ),
    );
    const third = await ask(contents, { tools: [] });
    expect(third).toMatchObject({ text: 'done', finishReason: 'Stop', toolCalls: [] });
    const ids = [...first.toolCalls, ...second.toolCalls].map(({ id }) => id);
    expect(new Set(ids).size).toBe(3);
    expect(ids).not.toContain('');
    expect(provider.refusals).toEqual([]);
    expect(JSON.stringify(provider.requests[2])).not.toContain('runs a command');
    expect(JSON.stringify(provider.requests)).not.toContain('never sent');
  });

  test('the conversation survives a checkpoint (JSON) and is not changed by a call', async () => {
    turns = [callTwice];
    const first = await ask([user('hi')]);
    const contents = [
      user('hi'),
      first.content,
      ...answered(
        model,
        first.toolCalls.map((call) => ({ call })),
      ),
    ];
    const kept = JSON.stringify(contents);
    await ask(JSON.parse(kept), { ephemeral: 'hurry' });
    await ask(contents, { ephemeral: 'hurry' });
    expect(JSON.stringify(contents)).toBe(kept);
    expect(provider.refusals).toEqual([]);
  });

  test('the ephemeral text comes last and with one call only', async () => {
    const contents = [user('hi')];
    await ask(contents, { ephemeral: 'hurry up' });
    expect(JSON.stringify(provider.requests[0])).toMatch(/hi.*hurry up/);
    await ask(contents);
    expect(JSON.stringify(provider.requests[1])).not.toContain('hurry up');
    expect(provider.refusals).toEqual([]);
  });

  test('an ephemeral text after tool results is accepted', async () => {
    turns = [callTwice];
    const first = await ask([user('hi')]);
    const results = answered(
      model,
      first.toolCalls.map((call) => ({ call })),
    );
    await ask([user('hi'), first.content, ...results], { ephemeral: 'hurry up' });
    expect(JSON.stringify(provider.requests[1])).toMatch(/out 1.*hurry up/);
    expect(provider.refusals).toEqual([]);
  });

  test('two user turns in a row are accepted, as after a reply to a cut conversation', async () => {
    await ask([user('one'), user('two')]);
    expect(provider.refusals).toEqual([]);
    expect(JSON.stringify(provider.requests[0])).toMatch(/one.*two/);
  });

  test('an answer cut by the output limit says so and keeps its text', async () => {
    turns = [{ text: 'half', finishReason: words.length }];
    expect(await ask([user('hi')])).toMatchObject({ text: 'half', finishReason: 'Length' });
  });

  test('a refused answer is read as blocked', async () => {
    turns = [{ text: 'I cannot', finishReason: words.safety }];
    expect(await ask([user('hi')])).toMatchObject({ text: 'I cannot', finishReason: 'Safety' });
  });

  test('an empty answer has nothing to keep', async () => {
    turns = [{ finishReason: words.stop }, { text: '  \n', finishReason: words.stop }];
    expect(await ask([user('hi')])).toMatchObject({ toolCalls: [], content: undefined });
    expect(await ask([user('hi')])).toMatchObject({ toolCalls: [], content: undefined });
  });

  test('the input counts everything that was sent, cached tokens included', async () => {
    turns = [{ text: 'x', usage: { prompt: 1_000_000, completion: 7, cached: 600 } }];
    const { usage } = await ask([user('hi')], { ephemeral: 'no write to the cache' });
    expect(usage).toEqual({
      inputTokens: 1_000_000,
      outputTokens: 7,
      cacheReadTokens: 600,
      cacheWriteTokens: 0,
    });
  });

  test('a wrong key is refused for good, with what to check and without the key', async () => {
    const error: unknown = await ask([user('hi')], {}, provider.stranger).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'ModelError', retryable: false });
    expect(String(error)).toMatch(/Check the (API key|Google Cloud credentials)/);
    expect(String(error)).not.toContain('wrong-secret');
  });

  test.each([
    [
      { kind: 'Status', status: 429, headers: { 'retry-after': '7' } },
      { status: 429, retryAfterMs: 7000 },
    ],
    [{ kind: 'Status', status: 500 }, { status: 500 }],
    [{ kind: 'Status', status: 503 }, { status: 503 }],
    [{ kind: 'Status', status: 529 }, { status: 529 }],
    [{ kind: 'Drop' }, { status: undefined }],
    [{ kind: 'CutBody' }, { status: undefined }],
    [{ kind: 'Garbage', text: '<html>' }, { status: undefined }],
    [{ kind: 'Garbage', text: '[1, 2' }, { status: undefined }],
  ] as [Fault, object][])('%j is worth another try', async (fault, expected) => {
    provider.faults.push(fault);
    await expect(ask([user('hi')])).rejects.toMatchObject({
      name: 'ModelError',
      retryable: true,
      ...expected,
    });
  });

  test.each([400, 403, 404, 413])('status %i is not', async (status) => {
    provider.faults.push({ kind: 'Status', status, body: { error: { message: 'said the server' } } });
    await expect(ask([user('hi')])).rejects.toMatchObject({
      name: 'ModelError',
      retryable: false,
      status,
      message: expect.stringContaining('said the server'),
    });
  });

  test('a slow answer ends after the time limit and is worth another try', async () => {
    provider.faults.push({ kind: 'Delay', ms: 5_000 });
    await expect(ask([user('hi')], {}, provider.hasty(100))).rejects.toMatchObject({ retryable: true });
  });

  test("an abort rejects with the caller's reason", async () => {
    const reason = new Error('cancelled');
    await expect(ask([user('hi')], { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  test('an answer in a form is the text, whatever way the provider has for it', async () => {
    const form = {
      name: 'verdict',
      schema: {
        type: 'object',
        properties: { ok: { type: 'boolean' }, words: { type: 'array', items: { type: 'string' } } },
        required: ['ok', 'words'],
        additionalProperties: false,
      },
    };
    const value = { ok: true, words: ['a'] };
    turns = [
      provider.model.provider === 'anthropic'
        ? { toolCalls: [{ name: 'verdict', args: value }] }
        : { text: JSON.stringify(value) },
    ];
    const response = await ask([user('hi')], { tools: [], answer: form });
    expect(JSON.parse(response.text)).toEqual(value);
    expect(response).toMatchObject({ toolCalls: [], finishReason: 'Stop' });
    expect(provider.refusals).toEqual([]);
    expect(JSON.stringify(provider.requests[0])).toContain('"words"');
  });

  test('a conversation goes to the canonical form and back, and is accepted', async () => {
    turns = [callTwice];
    const first = await ask([user('hi')]);
    const results = answered(
      model,
      first.toolCalls.map((call) => ({ call })),
    );
    const contents = [user('hi'), first.content, ...results, user('and now?')];
    const canonical = model.toCanonical(contents);
    expect(canonical.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'hi'],
      ['assistant', 'Looking.'],
      ['tool', '{"stdout":"out 0"}'],
      ['tool', '{"stdout":"out 1"}'],
      ['user', 'and now?'],
    ]);
    const back = model.fromCanonical(JSON.parse(JSON.stringify(canonical)));
    await ask(back);
    await ask(contents);
    expect(provider.refusals).toEqual([]);
    // The cache is elsewhere, the conversation is the same.
    const [, restored, original] = provider.requests.map(withoutBreakpoints);
    expect(restored).toEqual(original);
  });
});

function withoutBreakpoints(request: object): unknown {
  return JSON.parse(JSON.stringify(request), (key, value) => (key === 'cache_control' ? undefined : value));
}

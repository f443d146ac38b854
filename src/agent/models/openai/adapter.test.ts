import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  type Fault,
  type OpenAiServer,
  type ScriptedTurn,
  startOpenAi,
} from '../../../../test/fakes/openai/server.ts';
import { createHttpClient, type HttpClient } from '../../../http/client.ts';
import type { CanonicalMessage, Contents, GenerateRequest, Model, ToolDefinition } from '../port.ts';
import { createOpenAiModel } from './adapter.ts';

let http: HttpClient;
let server: OpenAiServer;
let turn: ScriptedTurn;
let model: Model;

beforeEach(async () => {
  http = createHttpClient();
  server = await startOpenAi({ scripts: { m: () => turn }, apiKey: 'sk-right' });
  model = createOpenAiModel({ name: 'm', baseUrl: `${server.url}/`, apiKey: 'sk-right', http });
  turn = { text: 'ok' };
});
afterEach(async () => {
  await http.close();
  await server.stop();
});

const tool: ToolDefinition = {
  name: 'run',
  description: 'runs',
  parameters: { type: 'object', properties: { cmd: { type: 'string' } } },
  notes: 'never sent with the definition',
};
const ask = (contents: Contents, more: Partial<GenerateRequest> = {}, of: Model = model) =>
  of.generate({ system: 'sys', contents, tools: [tool], ...more });
const user = (text: string) => model.makeUserContent(text);
/** A raw answer with this message. */
const raw = (message: unknown, finish_reason: string | null = 'stop'): ScriptedTurn => ({
  raw: { choices: [{ message, finish_reason }] },
});

describe('a request', () => {
  test('holds model, system prompt, conversation and tools, and nothing else', async () => {
    await ask([user('hi')]);
    expect(server.requests[0]).toEqual({
      model: 'm',
      messages: [
        { role: 'system', content: 'sys' },
        { role: 'user', content: 'hi' },
      ],
      tools: [
        { type: 'function', function: { name: 'run', description: 'runs', parameters: tool.parameters } },
      ],
    });
  });

  test('has no tools field when there are none', async () => {
    await ask([user('hi')], { tools: [] });
    expect(server.requests[0]).not.toHaveProperty('tools');
  });

  test('carries the ephemeral text as the last user turn, on a copy', async () => {
    const contents = [user('hi')];
    await ask(contents, { ephemeral: 'hurry' });
    expect(server.requests[0]?.messages.at(-1)).toEqual({ role: 'user', content: 'hi\n\nhurry' });
    expect(contents).toEqual([{ role: 'user', content: 'hi' }]);
  });

  test('BR-29 a: never holds an empty assistant message, not even from a resumed session', async () => {
    const messages: CanonicalMessage[] = [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: '' },
      { role: 'user', content: 'b' },
      { role: 'assistant', content: ' \n' },
      { role: 'user', content: 'c' },
    ];
    await ask(model.fromCanonical(messages));
    expect(server.requests[0]?.messages.slice(1)).toEqual([{ role: 'user', content: 'a\n\nb\n\nc' }]);
  });

  test('works without a key where the server wants none', async () => {
    const open = await startOpenAi({ scripts: { m: () => turn } });
    expect(
      await ask([user('hi')], {}, createOpenAiModel({ name: 'm', baseUrl: open.url, http })),
    ).toMatchObject({ text: 'ok' });
    await open.stop();
  });
});

describe('an answer', () => {
  test('BR-28: arguments as an object, no id and null content become one call with one id', async () => {
    turn = raw({
      role: 'assistant',
      content: null,
      tool_calls: [{ function: { name: 'run', arguments: { cmd: 'ls' } } }],
    });
    const first = await ask([user('hi')]);
    expect(first).toMatchObject({
      text: '',
      finishReason: 'ToolCalls',
      toolCalls: [{ name: 'run', arguments: { cmd: 'ls' }, rawArguments: '{"cmd":"ls"}' }],
    });
    turn = { text: 'done' };
    const [call] = first.toolCalls;
    const results = model.makeToolResponses([{ call: call!, result: { stdout: 'a.txt' } }]);
    await ask([user('hi'), first.content, ...results]);
    expect(server.requests[1]?.messages.slice(2)).toEqual([
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: call!.id, type: 'function', function: { name: 'run', arguments: '{"cmd":"ls"}' } },
        ],
      },
      { role: 'tool', tool_call_id: call!.id, content: '{"stdout":"a.txt"}' },
    ]);
    expect(server.refusals).toEqual([]);
  });

  test('with ids used before gets new ones, the same for the same history', async () => {
    const call = { id: 'call_0', type: 'function', function: { name: 'run', arguments: '{}' } };
    turn = raw({ content: null, tool_calls: [call, call] });
    const first = await ask([user('hi')]);
    const contents = [
      user('hi'),
      first.content,
      ...model.makeToolResponses(first.toolCalls.map((made) => ({ call: made, result: {} }))),
    ];
    const second = await ask(contents);
    const again = await ask(contents);
    const ids = [...first.toolCalls, ...second.toolCalls].map(({ id }) => id);
    expect(new Set(ids).size).toBe(4);
    expect(again.toolCalls).toEqual(second.toolCalls);
  });

  test.each(['[1]', '"text"', '{"cmd": ', 'null'])(
    'with arguments %s is a call that cannot be read',
    async (args) => {
      turn = raw(
        { content: '', tool_calls: [{ id: 'c', function: { name: 'run', arguments: args } }] },
        'tool_calls',
      );
      const answer = await ask([user('hi')]);
      expect(answer.toolCalls[0]).toMatchObject({ arguments: undefined, rawArguments: args });
      turn = { text: 'ok' };
      const results = model.makeToolResponses([{ call: answer.toolCalls[0]!, result: { error: 'x' } }]);
      await ask([user('hi'), answer.content, ...results]);
      expect(server.refusals).toEqual([]);
    },
  );

  test('without arguments is a call with none', async () => {
    turn = raw({
      tool_calls: [
        { id: 'a', function: { name: 'run' } },
        { id: 'b', function: { name: 'run', arguments: '' } },
      ],
    });
    expect((await ask([user('hi')])).toolCalls.map((call) => call.arguments)).toEqual([{}, {}]);
  });

  test.each([
    ['stop', 'Stop'],
    ['length', 'Length'],
    ['content_filter', 'Safety'],
    ['tool_calls', 'Stop'],
    [null, 'Other'],
    ['new_reason', 'Other'],
  ])('that ended by %s is read as %s', async (reason, expected) => {
    turn = raw({ content: 'text' }, reason);
    expect((await ask([user('hi')])).finishReason).toBe(expected);
  });

  test.each([
    ['no choices', { raw: { choices: [] } }],
    ['null choices', { raw: { choices: null, usage: null } }],
    ['no message', { raw: { choices: [{ finish_reason: 'stop' }] } }],
    ['blank text', raw({ content: ' \n' })],
  ])('with %s is empty, and nothing is kept of it', async (_name, answer) => {
    turn = answer;
    expect(await ask([user('hi')])).toMatchObject({ toolCalls: [], content: undefined });
  });

  test('in parts is one text, a refusal is its detail', async () => {
    turn = raw({
      content: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    });
    expect((await ask([user('hi')])).text).toBe('ab');
    turn = raw({ content: null, refusal: 'I cannot.' });
    expect(await ask([user('hi')])).toMatchObject({
      finishReason: 'Safety',
      detail: 'I cannot.',
      content: undefined,
    });
  });

  test('counts the cached tokens as part of the input', async () => {
    turn = { text: 'x', usage: { prompt: 100, completion: 7, cached: 60 } };
    expect((await ask([user('hi')])).usage).toEqual({
      inputTokens: 100,
      outputTokens: 7,
      cacheReadTokens: 60,
      cacheWriteTokens: 0,
    });
  });
});

describe('an answer in a form', () => {
  const answer = {
    name: 'verdict',
    schema: {
      type: 'object',
      properties: { a: { type: 'string' } },
      required: ['a'],
      additionalProperties: false,
    },
  };

  test('is asked for strictly and without chance', async () => {
    turn = { text: '{"a":"b"}' };
    await ask([user('hi')], { tools: [], answer });
    expect(server.requests[0]).toMatchObject({
      temperature: 0,
      response_format: { type: 'json_schema', json_schema: { ...answer, strict: true } },
    });
  });

  test.each(['content', 'reasoning_content', 'reasoning'])('is found in %s', async (field) => {
    turn = raw({ content: null, [field]: '{"a":"b"}' });
    expect((await ask([user('hi')], { tools: [], answer })).text).toBe('{"a":"b"}');
  });

  test('is asked for once more without temperature where the model refuses that', async () => {
    turn = { text: '{"a":"b"}' };
    server.faults.push({
      kind: 'Status',
      status: 400,
      body: { error: { message: "Unsupported value: 'temperature' does not support 0 with this model." } },
    });
    expect((await ask([user('hi')], { tools: [], answer })).text).toBe('{"a":"b"}');
    expect(server.requests[0]).not.toHaveProperty('temperature');
    expect(server.requests[0]).toHaveProperty('response_format');
  });
});

describe('an error', () => {
  const status = (code: number, body?: unknown, headers?: Record<string, string>): Fault => ({
    kind: 'Status',
    status: code,
    ...(body !== undefined && { body }),
    ...(headers && { headers }),
  });

  test.each([
    [
      status(429, { error: { message: 'slow down' } }, { 'retry-after': '7' }),
      { status: 429, retryable: true, retryAfterMs: 7000 },
    ],
    [status(500, { error: 'boom' }), { status: 500, retryable: true, message: /answered 500: boom\./ }],
    [status(503, 'busy'), { status: 503, retryable: true }],
    [status(400, { detail: [{ msg: 'bad' }] }), { status: 400, retryable: false, message: /"msg":"bad"/ }],
    [
      status(400, {
        error: {
          message: "This model's maximum context length is 4096 tokens",
          code: 'context_length_exceeded',
        },
      }),
      { retryable: false, message: /lower limits\.contextTokens/ },
    ],
    [
      status(404, { error: { message: 'no such model' } }),
      { retryable: false, message: /Check the base URL/ },
    ],
    [{ kind: 'Drop' }, { status: undefined, retryable: true }],
    [{ kind: 'CutBody' }, { status: undefined, retryable: true }],
    [
      { kind: 'Garbage', text: '<html>' },
      { retryable: true, message: /not JSON/ },
    ],
    [
      { kind: 'Garbage', text: '{"choices": 5}' },
      { retryable: true, message: /cannot be read: choices: / },
    ],
    [
      { kind: 'Garbage', text: '{"error":{"message":"upstream","code":502}}' },
      { status: 502, retryable: true, message: /upstream/ },
    ],
    [
      { kind: 'Garbage', text: '{"error":{"message":"bad key","code":401}}' },
      { status: 401, retryable: false },
    ],
  ] as [Fault, Record<string, unknown>][])(
    '%j says whether to try again and what to do',
    async (fault, expected) => {
      server.faults.push(fault);
      const { message, ...fields } = expected;
      const error = await ask([user('hi')]).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ name: 'ModelError', ...fields });
      if (message instanceof RegExp) expect(String(error)).toMatch(message);
    },
  );

  test('of a wrong key names what to check and not the key', async () => {
    const wrong = createOpenAiModel({ name: 'm', baseUrl: server.url, apiKey: 'sk-wrong-key', http });
    const error = await ask([user('hi')], {}, wrong).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'ModelError', status: 401, retryable: false });
    expect(String(error)).toMatch(/Check the API key/);
    expect(String(error)).not.toContain('sk-wrong-key');
  });

  test('of a server that is not there is worth another try', async () => {
    const nowhere = createOpenAiModel({ name: 'm', baseUrl: 'http://127.0.0.1:9', http });
    await expect(ask([user('hi')], {}, nowhere)).rejects.toMatchObject({
      name: 'ModelError',
      retryable: true,
    });
  });

  test('of a slow server comes after the time limit and is worth another try', async () => {
    server.faults.push({ kind: 'Delay', ms: 5_000 });
    const hasty = createOpenAiModel({
      name: 'm',
      baseUrl: server.url,
      apiKey: 'sk-right',
      http,
      timeoutMs: 100,
    });
    await expect(ask([user('hi')], {}, hasty)).rejects.toMatchObject({ name: 'ModelError', retryable: true });
  });

  test('is no ModelError when the caller aborts', async () => {
    const reason = new Error('cancelled');
    await expect(ask([user('hi')], { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });
});

test('a conversation goes to the canonical form and back unchanged', async () => {
  turn = raw({
    content: 'thinking',
    tool_calls: [{ id: 'c1', function: { name: 'run', arguments: '{"cmd":"ls"}' } }],
  });
  const answer = await ask([user('hi')]);
  const contents = [
    user('hi'),
    answer.content,
    ...model.makeToolResponses([{ call: answer.toolCalls[0]!, result: { a: 1 } }]),
  ];
  const canonical = model.toCanonical(contents);
  expect(canonical).toEqual([
    { role: 'user', content: 'hi' },
    {
      role: 'assistant',
      content: 'thinking',
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'run', arguments: '{"cmd":"ls"}' } }],
    },
    { role: 'tool', tool_call_id: 'c1', name: 'run', content: '{"a":1}' },
  ]);
  expect(model.toCanonical(model.fromCanonical(canonical))).toEqual(canonical);
});

test("another provider's data survives in the session and is not sent", async () => {
  const extra = { gemini: { signature: 'c2lnLTE=' } };
  const canonical: CanonicalMessage[] = [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: 'b', extra },
    { role: 'user', content: 'c' },
  ];
  const contents = model.fromCanonical(canonical);
  await ask(contents);
  expect(server.refusals).toEqual([]);
  expect(model.toCanonical(contents)).toEqual(canonical);
});

test('a name that another service took for a tool is one that this protocol takes', async () => {
  const call = { id: 'c', type: 'function' as const, function: { name: 'default_api:run', arguments: '{}' } };
  const messages: CanonicalMessage[] = [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: '', tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c', name: 'default_api:run', content: '{}' },
  ];
  await ask(model.fromCanonical(messages));
  expect(server.refusals).toEqual([]);
});

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type GeminiServer, type ScriptedTurn, startGemini } from '../../../../test/fakes/gemini/server.ts';
import { createHttpClient, type HttpClient } from '../../../http/client.ts';
import type { CanonicalMessage, Contents, GenerateRequest, Model, ToolDefinition } from '../port.ts';
import { createGeminiModel, type GeminiService } from './adapter.ts';
import type { GeminiContent } from './wire.ts';

let http: HttpClient;
let server: GeminiServer;
let turn: ScriptedTurn;
let model: Model;
let onVertex: Model;

const MODELS = ['gemini-2.5-pro', 'gemini-3-pro-preview', 'gemini-flash-latest'];

beforeEach(async () => {
  http = createHttpClient();
  server = await startGemini({
    scripts: Object.fromEntries(MODELS.map((name) => [name, () => turn])),
    apiKey: 'key',
    vertex: { isToken: (token) => token === 'token', project: 'p', location: 'europe-west1' },
  });
  turn = { text: 'ok' };
  model = create('gemini-3-pro-preview');
  onVertex = create('gemini-3-pro-preview', {
    kind: 'Vertex',
    place: { project: 'p', location: 'europe-west1', origin: server.origin },
    access: { project: async () => 'p', token: async () => 'token' },
  });
});
afterEach(async () => {
  await http.close();
  await server.stop();
});

function create(
  name: string,
  service: GeminiService = { kind: 'DeveloperApi', apiKey: 'key', origin: `${server.origin}/` },
): Model {
  return createGeminiModel({ name, http, service });
}

const tool: ToolDefinition = {
  name: 'run',
  description: 'runs',
  parameters: { type: 'object', properties: { cmd: { type: 'string', pattern: '^l' } } },
};
const ask = (contents: Contents, more: Partial<GenerateRequest> = {}, of: Model = model) =>
  of.generate({ system: 'sys', contents, tools: [tool], ...more });
const user = (text: string) => model.makeUserContent(text);
const candidate = (fields: object): ScriptedTurn => ({ raw: { candidates: [fields] } });
const parts = (...list: object[]): ScriptedTurn =>
  candidate({ content: { role: 'model', parts: list }, finishReason: 'STOP' });
const partsSent = (index: number) =>
  server.requests[index]?.contents.filter(({ role }) => role === 'model').flatMap((content) => content.parts);

describe('a request', () => {
  test('holds system prompt, conversation and tools, and nothing else', async () => {
    await ask([user('hi')]);
    expect(server.requests[0]).toEqual({
      systemInstruction: { parts: [{ text: 'sys' }] },
      contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
      tools: [
        {
          functionDeclarations: [
            {
              name: 'run',
              description: 'runs',
              parametersJsonSchema: { type: 'object', properties: { cmd: { type: 'string' } } },
            },
          ],
        },
      ],
    });
  });

  test('bounds the answer only when asked to', async () => {
    const service: GeminiService = { kind: 'DeveloperApi', apiKey: 'key', origin: server.origin };
    const bounded = createGeminiModel({ name: 'gemini-2.5-pro', http, service, maxOutputTokens: 999 });
    await ask([user('hi')], {}, bounded);
    expect(server.requests[0]?.generationConfig).toEqual({ maxOutputTokens: 999 });
  });
});

describe('ids of calls', () => {
  const twice: ScriptedTurn = {
    toolCalls: [
      { name: 'run', args: { cmd: 'a' } },
      { name: 'run', args: { cmd: 'b' } },
    ],
  };

  test('given by the API go back with call and result, beside the signature of the first', async () => {
    turn = twice;
    const first = await ask([user('hi')]);
    expect(first.toolCalls.map(({ id }) => id)).toEqual(['fc-1-0', 'fc-1-1']);
    const results = model.makeToolResponses(first.toolCalls.map((call) => ({ call, result: {} })));
    await ask([user('hi'), first.content, ...results]);
    expect(server.refusals).toEqual([]);
    expect(JSON.stringify(server.requests[1])).toContain('"functionResponse":{"id":"fc-1-1"');
    const signature = Buffer.from('signature 1').toString('base64');
    expect(partsSent(1)?.map((part) => part.thoughtSignature)).toEqual([signature, undefined]);
  });

  test('are made up where there are none, unlike all others, and not sent', async () => {
    turn = twice;
    const first = await ask([user('hi')], {}, onVertex);
    const results = onVertex.makeToolResponses(first.toolCalls.map((call) => ({ call, result: {} })));
    const contents = [user('hi'), first.content, ...results];
    const second = await ask(contents, {}, onVertex);
    const ids = [...first.toolCalls, ...second.toolCalls].map(({ id }) => id);
    expect(new Set(ids).size).toBe(4);
    expect(server.refusals).toEqual([]);
    expect(JSON.stringify(server.requests[1])).not.toContain('"id"');
    expect(onVertex.toCanonical(contents).flatMap((m) => (m.role === 'tool' ? m.tool_call_id : []))).toEqual(
      first.toolCalls.map(({ id }) => id),
    );
  });

  test('of the Developer API are left out when the conversation moves to Vertex', async () => {
    turn = twice;
    const first = await ask([user('hi')]);
    const results = model.makeToolResponses(first.toolCalls.map((call) => ({ call, result: {} })));
    await ask([user('hi'), first.content, ...results], {}, onVertex);
    expect(server.refusals).toEqual([]);
  });
});

describe('thought signatures', () => {
  test('go back exactly, on whatever part they came', async () => {
    const came = [
      { text: 'hidden thoughts', thought: true, thoughtSignature: 'c2lnLTE=' },
      { text: 'Looking. ' },
      { functionCall: { name: 'run', args: { cmd: 'ls' } }, thoughtSignature: 'c2lnLTI=' },
      { functionCall: { name: 'run', args: {} } },
      { text: '', thoughtSignature: 'c2lnLTM=' },
    ];
    turn = parts(...came);
    const answer = await ask([user('hi')]);
    expect(answer.text).toBe('Looking. ');
    expect(answer.content).toEqual({ role: 'model', parts: came });
    const results = model.makeToolResponses(answer.toolCalls.map((call) => ({ call, result: {} })));
    const contents = [user('hi'), answer.content, ...results];
    const canonical = JSON.parse(JSON.stringify(model.toCanonical(contents)));
    expect(model.fromCanonical(canonical)[1]).toEqual(answer.content);
    expect(JSON.stringify(canonical)).toContain('c2lnLTE=');
  });

  test.each([
    ['gemini-3-pro-preview', 'skip_thought_signature_validator'],
    ['gemini-flash-latest', 'skip_thought_signature_validator'],
    ['gemini-2.5-pro', undefined],
  ])('missing on calls of another model are stood in for with %s: %s', async (name, signature) => {
    const call = (id: string) => ({
      id,
      type: 'function' as const,
      function: { name: 'run', arguments: '{}' },
    });
    const messages: CanonicalMessage[] = [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: '', tool_calls: [call('x'), call('y')] },
      { role: 'tool', tool_call_id: 'y', name: 'run', content: 'not JSON' },
      { role: 'tool', tool_call_id: 'x', name: 'run', content: '{"a":1}' },
    ];
    const of = create(name);
    const contents = of.fromCanonical(messages);
    await ask(contents, {}, of);
    expect(server.refusals).toEqual([]);
    expect(partsSent(0)?.map((part) => part.thoughtSignature)).toEqual([signature, undefined]);
    expect(JSON.stringify(contents)).not.toContain('skip_thought');
    expect(server.requests[0]?.contents[2]?.parts.map((part) => part.functionResponse)).toEqual([
      { id: 'x', name: 'run', response: { a: 1 } },
      { id: 'y', name: 'run', response: { result: 'not JSON' } },
    ]);
  });
});

test('signatures that the service refuses are left out once: those of another service, say', async () => {
  const parts = [
    { text: 'Looking.', thoughtSignature: 'b3RoZXI=' },
    { functionCall: { name: 'run', args: {} }, thoughtSignature: 'b3RoZXI=' },
  ];
  const results = model.makeToolResponses([
    { call: { id: 'x', name: 'run', arguments: {}, rawArguments: '{}' }, result: {} },
  ]);
  const contents = [user('hi'), { role: 'model', parts }, ...results];
  expect(await ask(contents)).toMatchObject({ text: 'ok' });
  expect(server.refusals).toHaveLength(1);
  expect(partsSent(0)?.map((part) => part.thoughtSignature)).toEqual([
    undefined,
    'skip_thought_signature_validator',
  ]);
  expect(contents[1]).toEqual({ role: 'model', parts });
});

describe('an answer', () => {
  test.each([
    ['MALFORMED_FUNCTION_CALL', 'MalformedCall'],
    ['UNEXPECTED_TOOL_CALL', 'MalformedCall'],
    ['TOO_MANY_TOOL_CALLS', 'MalformedCall'],
    ['RECITATION', 'Safety'],
    ['PROHIBITED_CONTENT', 'Safety'],
    ['MAX_TOKENS', 'Length'],
    ['OTHER', 'Other'],
    ['SOMETHING_NEW', 'Other'],
  ])(
    'BR-19, BR-21: that ended by %s without a content key is empty and read as %s',
    async (reason, expected) => {
      turn = candidate({ finishReason: reason, finishMessage: 'why', index: 0 });
      expect(await ask([user('hi')])).toMatchObject({
        text: '',
        toolCalls: [],
        content: undefined,
        finishReason: expected,
        detail: `${reason}: why`,
      });
    },
  );

  test('BR-21 a: to a blocked prompt has no candidate and says why', async () => {
    turn = { raw: { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 9 } } };
    expect(await ask([user('hi')])).toMatchObject({
      finishReason: 'Safety',
      detail: 'SAFETY',
      content: undefined,
      usage: { inputTokens: 9, outputTokens: 0 },
    });
  });

  test.each([
    ['{}', { raw: {} }],
    ['no candidates', { raw: { candidates: [] } }],
    ['null candidates', { raw: { candidates: null, usageMetadata: null } }],
    ['BR-20: STOP and no parts', candidate({ content: { role: 'model' }, finishReason: 'STOP' })],
    ['BR-20: STOP and empty parts', parts()],
    ['only thoughts', parts({ text: 'hm', thought: true })],
    ['only a signature', parts({ text: '', thoughtSignature: 'c2ln' })],
  ] as [string, ScriptedTurn][])('with %s is empty, and nothing is kept of it', async (_name, answer) => {
    turn = answer;
    expect(await ask([user('hi')])).toMatchObject({ text: '', toolCalls: [], content: undefined });
  });

  test('counts thoughts as output and cached tokens as part of the input', async () => {
    turn = {
      raw: {
        candidates: [{ content: { parts: [{ text: 'x' }] }, finishReason: 'STOP' }],
        usageMetadata: {
          promptTokenCount: 100,
          toolUsePromptTokenCount: 4,
          cachedContentTokenCount: 60,
          candidatesTokenCount: 7,
          thoughtsTokenCount: 50,
        },
      },
    };
    expect((await ask([user('hi')])).usage).toEqual({
      inputTokens: 104,
      outputTokens: 57,
      cacheReadTokens: 60,
      cacheWriteTokens: 0,
    });
  });

  test('with arguments that are no object is a call that cannot be read, and goes back with none', async () => {
    turn = parts({ functionCall: { name: 'run', args: ['ls'] } }, { functionCall: { name: 'run' } });
    const answer = await ask([user('hi')]);
    expect(answer.toolCalls.map(({ arguments: args, rawArguments }) => [args, rawArguments])).toEqual([
      [undefined, '["ls"]'],
      [{}, '{}'],
    ]);
    const results = model.makeToolResponses(answer.toolCalls.map((call) => ({ call, result: {} })));
    await ask([user('hi'), answer.content, ...results]);
    expect(server.refusals).toEqual([]);
  });

  test('that was blocked executes none of its calls', async () => {
    turn = candidate({
      content: { parts: [{ text: 'I' }, { functionCall: { name: 'run', args: {} } }] },
      finishReason: 'SAFETY',
    });
    expect(await ask([user('hi')])).toMatchObject({ text: 'I', toolCalls: [], finishReason: 'Safety' });
  });
});

describe('an error', () => {
  const quota = (...details: object[]) => ({
    kind: 'Status' as const,
    status: 429,
    body: { error: { code: 429, message: 'Quota exceeded.', status: 'RESOURCE_EXHAUSTED', details } },
  });
  const retryInfo = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '48.203s' };

  test('BR-23: names the wait that the provider asks for', async () => {
    server.faults.push(quota({ '@type': 'type.googleapis.com/google.rpc.Help', links: [] }, retryInfo));
    await expect(ask([user('hi')])).rejects.toMatchObject({
      retryable: true,
      status: 429,
      retryAfterMs: 48_203,
    });
  });

  test('BR-23: finds the wait behind long details and in the message', async () => {
    const violations = Array.from({ length: 12 }, (_, n) => ({
      quotaMetric: `generativelanguage.googleapis.com/generate_content_paid_tier_input_token_count_${n}`,
      quotaId: 'GenerateContentPaidTierInputTokensPerModelPerMinute',
      quotaDimensions: { location: 'global', model: 'gemini-3-pro' },
    }));
    server.faults.push(quota({ violations }, retryInfo));
    await expect(ask([user('hi')])).rejects.toMatchObject({ retryAfterMs: 48_203 });
    const error = { code: 429, message: 'You exceeded your quota. Please retry in 34.07s.' };
    server.faults.push({ kind: 'Status', status: 429, body: { error } });
    await expect(ask([user('hi')])).rejects.toMatchObject({ retryAfterMs: 34_070 });
  });

  test('BR-24: without a wait says that the quota is used up', async () => {
    server.faults.push(quota({ '@type': 'type.googleapis.com/google.rpc.Help', links: [] }));
    await expect(ask([user('hi')])).rejects.toMatchObject({
      retryable: true,
      retryAfterMs: undefined,
      message: expect.stringMatching(/Quota exceeded\..*rate limit or quota is used up/),
    });
  });

  test('in a list, as one of the endpoints sends it, is read as well', async () => {
    server.faults.push({
      kind: 'Status',
      status: 400,
      body: [{ error: { code: 400, message: 'bad turn' } }],
    });
    await expect(ask([user('hi')])).rejects.toMatchObject({
      retryable: false,
      message: expect.stringContaining('bad turn'),
    });
  });

  test('of a conversation that is too long says what to lower', async () => {
    const message = 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).';
    server.faults.push({ kind: 'Status', status: 400, body: { error: { code: 400, message } } });
    await expect(ask([user('hi')])).rejects.toThrow(/lower limits\.contextTokens/);
  });

  test('never shows the key: it is in a header, and the address holds none', async () => {
    server.faults.push({ kind: 'Status', status: 404 });
    const error: unknown = await ask([user('hi')]).catch((thrown: unknown) => thrown);
    expect(String(error)).toContain(':generateContent');
    expect(String(error)).not.toContain('key=');
  });
});

describe('an old session in the form of this API', () => {
  const legacy = [
    { role: 'user', parts: [{ text: '{"iid":1}' }] },
    {
      role: 'model',
      parts: [
        { text: 'Looking.' },
        { functionCall: { name: 'run', args: { cmd: 'ls' } }, thoughtSignature: 'c2lnLTE=' },
        { functionCall: { name: 'run', args: { cmd: 'pwd' } } },
      ],
    },
    {
      role: 'tool',
      parts: [
        { functionResponse: { name: 'run', response: { stdout: 'a' } } },
        { functionResponse: { name: 'run', response: { stdout: 'b' } } },
      ],
    },
    { role: 'model', parts: [{ text: 'Done.' }] },
  ];

  test('becomes canonical, with ids that pair calls and results', () => {
    expect(model.toCanonical(legacy)).toMatchObject([
      { role: 'user', content: '{"iid":1}' },
      { role: 'assistant', content: 'Looking.', tool_calls: [{ id: 'call_1_0' }, { id: 'call_1_1' }] },
      { role: 'tool', tool_call_id: 'call_1_0', name: 'run', content: '{"stdout":"a"}' },
      { role: 'tool', tool_call_id: 'call_1_1', name: 'run', content: '{"stdout":"b"}' },
      { role: 'assistant', content: 'Done.' },
    ]);
    const restored = model.fromCanonical(model.toCanonical(legacy)) as readonly GeminiContent[];
    expect(restored[1]?.parts).toEqual(legacy[1]?.parts);
  });

  test('that cannot be read names the place', () => {
    expect(() => model.toCanonical([{ role: 'user', parts: [{ text: 5 }] }])).toThrow(
      /not in Gemini's form: 0\.parts\.0\.text/,
    );
  });
});

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { countBreakpoints } from '../../../../test/fakes/anthropic/check.ts';
import {
  type AnthropicServer,
  type ScriptedTurn,
  startAnthropic,
} from '../../../../test/fakes/anthropic/server.ts';
import { createHttpClient, type HttpClient } from '../../../http/client.ts';
import type { CanonicalMessage, Contents, GenerateRequest, Model, ToolDefinition } from '../port.ts';
import { createAnthropicVertexModel } from './adapter.ts';
import { withBreakpoints } from './cache.ts';

const NAME = 'claude-opus-5@20260401';

let http: HttpClient;
let server: AnthropicServer;
let turn: ScriptedTurn;
let model: Model;

beforeEach(async () => {
  http = createHttpClient();
  server = await startAnthropic({
    scripts: { [NAME]: () => turn },
    vertex: { isToken: (token) => token === 'token', project: 'p', location: 'europe-west1' },
  });
  turn = { text: 'ok' };
  model = create();
});
afterEach(async () => {
  await http.close();
  await server.stop();
});

function create(maxOutputTokens?: number): Model {
  return createAnthropicVertexModel({
    name: NAME,
    http,
    place: { project: 'p', location: 'europe-west1', origin: server.origin },
    access: { project: async () => 'p', token: async () => 'token' },
    ...(maxOutputTokens && { maxOutputTokens }),
  });
}

const tool: ToolDefinition = {
  name: 'run',
  description: 'runs',
  parameters: { type: 'object', properties: { cmd: { type: 'string' } } },
};
const ask = (contents: Contents, more: Partial<GenerateRequest> = {}, of: Model = model) =>
  of.generate({ system: 'sys', contents, tools: [tool], ...more });
const user = (text: string) => model.makeUserContent(text);
const raw = (content: unknown, stop_reason: string | null = 'end_turn'): ScriptedTurn => ({
  raw: { content, stop_reason, usage: { input_tokens: 1, output_tokens: 1 } },
});
/** Where breakpoints were in a request: message and block. */
const breakpoints = (index: number): string[] =>
  (server.requests[index]?.messages ?? []).flatMap(({ content }, message) =>
    content.flatMap((block, at) =>
      'cache_control' in block && block.cache_control ? [`${message}.${at}`] : [],
    ),
  );
/** The conversation after one more turn with a tool call. */
async function step(contents: Contents, more: Partial<GenerateRequest> = {}): Promise<Contents> {
  turn = { text: 'Looking.', toolCalls: [{ name: 'run', args: { cmd: 'ls' } }] };
  const answer = await ask(contents, more);
  const results = answer.toolCalls.map((call) => ({ call, result: { stdout: 'x' } }));
  return [...contents, answer.content, ...model.makeToolResponses(results)];
}

describe('a request', () => {
  test('holds version, length, system prompt, conversation and tools, and nothing else', async () => {
    await ask([user('hi')]);
    expect(server.requests[0]).toEqual({
      anthropic_version: 'vertex-2023-10-16',
      max_tokens: 16_384,
      system: 'sys',
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'hi', cache_control: { type: 'ephemeral' } }] },
      ],
      tools: [{ name: 'run', description: 'runs', input_schema: tool.parameters }],
    });
  });

  test('bounds the answer as the workflow says', async () => {
    await ask([user('hi')], {}, create(999));
    expect(server.requests[0]?.max_tokens).toBe(999);
  });

  test('merges an ephemeral text with the tool results before it, on a copy', async () => {
    const contents = await step([user('hi')]);
    const kept = JSON.stringify(contents);
    await ask(contents, { ephemeral: 'hurry' });
    expect(server.requests[1]?.messages.at(-1)?.content).toMatchObject([
      { type: 'tool_result', content: '{"stdout":"x"}' },
      { type: 'text', text: 'hurry' },
    ]);
    expect(JSON.stringify(contents)).toBe(kept);
  });

  test('BR-26: holds no blank text, and an empty tool result has no content', async () => {
    const call = (id: string) => ({
      id,
      type: 'function' as const,
      function: { name: 'run', arguments: '{}' },
    });
    const messages: CanonicalMessage[] = [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: '', tool_calls: [call('c1')] },
      { role: 'tool', tool_call_id: 'c1', name: 'run', content: '' },
      { role: 'assistant', content: '   ', tool_calls: [call('c2')] },
      { role: 'tool', tool_call_id: 'c2', name: 'run', content: 'x' },
      { role: 'assistant', content: ' \n' },
      { role: 'user', content: 'b' },
    ];
    await ask(model.fromCanonical(messages));
    expect(server.refusals).toEqual([]);
    expect(server.requests[0]?.messages.slice(1)).toMatchObject([
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c1' }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1' }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c2' }] },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'c2', content: 'x' },
          { type: 'text', text: 'b' },
        ],
      },
    ]);
    expect(server.requests[0]?.messages[2]?.content[0]).not.toHaveProperty('content');
  });

  test('BR-26: holds no blank text that a session kept in the own form of the API', async () => {
    const content = [
      { type: 'text', text: ' ' },
      { type: 'text', text: 'x', citations: null },
    ];
    const messages: CanonicalMessage[] = [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: ' x', extra: { anthropic: { content } } },
      { role: 'user', content: 'b' },
    ];
    await ask(model.fromCanonical(messages));
    expect(server.refusals).toEqual([]);
    expect(server.requests[0]?.messages[1]?.content).toEqual([content[1]]);
  });

  test('has ids and names that the API takes, one for one', async () => {
    const call = (id: string, name: string) => ({
      id,
      type: 'function' as const,
      function: { name, arguments: 'not JSON' },
    });
    const messages: CanonicalMessage[] = [
      { role: 'user', content: 'a' },
      {
        role: 'assistant',
        content: '',
        tool_calls: [call('functions.run:0', 'api.run'), call('functions:run.0', '')],
      },
      { role: 'tool', tool_call_id: 'functions:run.0', name: '', content: '2' },
      { role: 'tool', tool_call_id: 'functions.run:0', name: 'api.run', content: '1' },
    ];
    await ask(model.fromCanonical(messages));
    expect(server.refusals).toEqual([]);
    expect(server.requests[0]?.messages.slice(1).map(({ content }) => content)).toMatchObject([
      [
        { id: 'functions_run_0', name: 'api_run', input: {} },
        { id: 'functions_run_0_', name: '_' },
      ],
      [{ tool_use_id: 'functions_run_0_' }, { tool_use_id: 'functions_run_0' }],
    ]);
  });
});

describe('cache breakpoints', () => {
  test('slide: the last entry writes, the one where the call before wrote reads', async () => {
    let contents: Contents = [user('hi')];
    contents = await step(contents);
    contents = await step(contents);
    await step(contents);
    expect([0, 1, 2].map(breakpoints)).toEqual([['0.0'], ['0.0', '2.0'], ['2.0', '4.0']]);
  });

  test('an ephemeral turn reads and does not write, and the next one reads at the same place', async () => {
    let contents: Contents = [user('hi')];
    contents = await step(contents);
    contents = await step(contents, { ephemeral: 'hurry' });
    await step(contents);
    expect([0, 1, 2].map(breakpoints)).toEqual([['0.0'], ['0.0'], ['0.0', '4.0']]);
    expect(JSON.stringify(server.requests[1]?.messages.at(-1))).toMatch(/"text":"hurry"}/);
  });

  test('of a call that failed do not count: the repeated call reads where the last answered one wrote', async () => {
    const contents = await step([user('hi')]);
    server.faults.push({ kind: 'Status', status: 529 });
    await expect(ask(contents)).rejects.toMatchObject({ retryable: true, status: 529 });
    await ask(contents);
    expect([0, 1].map(breakpoints)).toEqual([['0.0'], ['0.0', '2.0']]);
  });

  test('are forgotten when a shorter conversation begins', async () => {
    await step(await step([user('hi')]));
    await ask([user('anew')]);
    expect(breakpoints(2)).toEqual(['0.0']);
  });

  test('never stand on thoughts or blank text', () => {
    const thinking = { type: 'thinking', thinking: 'hm', signature: 's' };
    const history = [
      {
        role: 'assistant' as const,
        content: [{ type: 'text', text: 'x' }, { type: 'text', text: ' ' }, thinking],
      },
      { role: 'assistant' as const, content: [thinking] },
    ];
    expect(withBreakpoints(history, [0, 1])).toEqual([
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'x', cache_control: { type: 'ephemeral' } },
          { type: 'text', text: ' ' },
          thinking,
        ],
      },
      { role: 'assistant', content: [thinking] },
    ]);
  });

  test('make every call after the first read all but the newest turn', async () => {
    let contents: Contents = [user('long '.repeat(2000))];
    turn = { text: 'Looking.', toolCalls: [{ name: 'run', args: { cmd: 'ls' } }] };
    const usages = [];
    for (let call = 0; call < 4; call++) {
      const answer = await ask(contents);
      usages.push(answer.usage);
      const results = answer.toolCalls.map((made) => ({ call: made, result: { stdout: 'x' } }));
      contents = [...contents, answer.content, ...model.makeToolResponses(results)];
    }
    const [first, ...later] = usages;
    expect(first).toMatchObject({ cacheReadTokens: 0 });
    expect(first!.cacheWriteTokens).toBeGreaterThan(2000);
    for (const usage of later) {
      expect(usage.cacheReadTokens).toBeGreaterThan(2000);
      expect(usage.cacheWriteTokens).toBeLessThan(100);
    }
  });

  test('BR-27: are at most 4 in a resumed session with 9 tools and an ephemeral turn, and none is kept', async () => {
    const tools = Array.from({ length: 9 }, (_, n) => ({ ...tool, name: `run_${n}` }));
    const resumed = Array.from({ length: 12 }, (_, n): CanonicalMessage[] => [
      { role: 'user', content: `question ${n}` },
      { role: 'assistant', content: `answer ${n}` },
    ]).flat();
    let contents: Contents = [...model.fromCanonical(resumed), user('and now?')];
    contents = await step(contents, { tools });
    contents = await step(contents, { tools, ephemeral: 'hurry' });
    contents = await step(contents, { tools });
    await ask(contents, { tools: [], ephemeral: 'last turn' });
    expect(server.refusals).toEqual([]);
    expect(server.requests.map(countBreakpoints)).toEqual([1, 1, 2, 1]);
    expect(JSON.stringify(contents)).not.toContain('cache_control');
    expect(JSON.stringify(model.toCanonical(contents))).not.toContain('cache_control');
  });
});

describe('an answer', () => {
  test('with thoughts gives them back exactly, also after a resume, and shows none of them', async () => {
    turn = { thinking: 'Let me see.', text: 'Looking.', toolCalls: [{ name: 'run', args: { cmd: 'ls' } }] };
    const answer = await ask([user('hi')]);
    expect(answer.text).toBe('Looking.');
    const results = model.makeToolResponses(answer.toolCalls.map((call) => ({ call, result: {} })));
    const contents = [user('hi'), answer.content, ...results];
    await ask(contents);
    const canonical = JSON.parse(JSON.stringify(model.toCanonical(contents)));
    await ask(model.fromCanonical(canonical));
    expect(server.refusals).toEqual([]);
    expect(server.requests[2]?.messages[1]).toEqual(server.requests[1]?.messages[1]);
    expect(canonical[1].content).toBe('Looking.');
  });

  test('whose signed thoughts are refused later is sent once more without them', async () => {
    const foreign = { type: 'thinking', thinking: 'of another time', signature: 'c2ln' };
    const past = { role: 'assistant', content: [foreign, { type: 'text', text: 'Done.' }] };
    expect(await ask([user('hi'), past, user('and?')])).toMatchObject({ text: 'ok' });
    expect(server.refusals).toHaveLength(1);
    expect(server.requests[0]?.messages[1]?.content).toEqual([{ type: 'text', text: 'Done.' }]);
  });

  test.each([
    ['end_turn', 'Stop', undefined],
    ['stop_sequence', 'Stop', undefined],
    ['max_tokens', 'Length', 'max_tokens'],
    ['model_context_window_exceeded', 'Length', 'model_context_window_exceeded'],
    ['pause_turn', 'Length', 'pause_turn'],
    ['refusal', 'Safety', 'refusal'],
    ['something_new', 'Other', 'something_new'],
    [null, 'Other', undefined],
  ])('that stopped for %s is read as %s', async (reason, finishReason, detail) => {
    turn = raw([{ type: 'text', text: 'x', citations: null }], reason);
    const answer = await ask([user('hi')]);
    expect([answer.finishReason, answer.detail]).toEqual([finishReason, detail]);
  });

  test('that was refused executes none of its calls and says why', async () => {
    turn = {
      raw: {
        content: [
          { type: 'text', text: 'I' },
          { type: 'tool_use', id: 't', name: 'run', input: {} },
        ],
        stop_reason: 'refusal',
        stop_details: { type: 'refusal', category: 'cyber', explanation: 'because' },
      },
    };
    expect(await ask([user('hi')])).toMatchObject({
      text: 'I',
      toolCalls: [],
      finishReason: 'Safety',
      detail: 'refusal: cyber: because',
    });
  });

  test.each([
    ['no content', raw([])],
    ['null content', raw(null)],
    ['blank text', raw([{ type: 'text', text: '\n' }])],
    ['only thoughts', raw([{ type: 'thinking', thinking: 'hm', signature: 's' }])],
    ['nothing at all', { raw: {} }],
  ] as [string, ScriptedTurn][])('with %s is empty, and nothing is kept of it', async (_name, answer) => {
    turn = answer;
    expect(await ask([user('hi')])).toMatchObject({ text: '', toolCalls: [], content: undefined });
  });

  test('BR-26: with blank text beside a call keeps the call only', async () => {
    turn = raw(
      [
        { type: 'text', text: '' },
        { type: 'tool_use', id: 't', name: 'run', input: 'ls' },
      ],
      'tool_use',
    );
    const answer = await ask([user('hi')]);
    expect(answer.toolCalls).toEqual([{ id: 't', name: 'run', arguments: undefined, rawArguments: '"ls"' }]);
    const results = model.makeToolResponses(answer.toolCalls.map((call) => ({ call, result: {} })));
    await ask([user('hi'), answer.content, ...results]);
    expect(server.refusals).toEqual([]);
  });

  test('counts what was read from the cache and written to it as input', async () => {
    turn = {
      raw: {
        content: [{ type: 'text', text: 'x' }],
        stop_reason: 'end_turn',
        usage: {
          input_tokens: 10,
          cache_read_input_tokens: 700,
          cache_creation_input_tokens: 90,
          output_tokens: 7,
        },
      },
    };
    expect((await ask([user('hi')])).usage).toEqual({
      inputTokens: 800,
      outputTokens: 7,
      cacheReadTokens: 700,
      cacheWriteTokens: 90,
    });
  });
});

describe('an error', () => {
  test('of an account without permission says what to check', async () => {
    const error = { code: 403, message: 'Permission denied on resource.', status: 'PERMISSION_DENIED' };
    server.faults.push({ kind: 'Status', status: 403, body: { error } });
    await expect(ask([user('hi')])).rejects.toThrow(/Permission denied.*roles\/aiplatform\.user/);
  });

  test('of a model that is not offered there names the location', async () => {
    server.faults.push({ kind: 'Status', status: 404, body: { error: { message: 'not found' } } });
    await expect(ask([user('hi')])).rejects.toThrow(/offered at location europe-west1/);
  });

  test('of a conversation that is too long says what to lower', async () => {
    const error = {
      type: 'invalid_request_error',
      message: 'prompt is too long: 210000 tokens > 200000 maximum',
    };
    server.faults.push({ kind: 'Status', status: 400, body: { type: 'error', error } });
    await expect(ask([user('hi')])).rejects.toThrow(/lower limits\.contextTokens/);
  });
});

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type AnthropicServer, startAnthropic } from './server.ts';

let server: AnthropicServer;
beforeEach(async () => {
  server = await startAnthropic({
    scripts: { 'claude-opus-5': () => ({ text: 'ok' }) },
    vertex: { isToken: (token) => token === 'token', project: 'p', location: 'global' },
  });
});
afterEach(() => server.stop());

const PATH = '/v1/projects/p/locations/global/publishers/anthropic/models/claude-opus-5:rawPredict';

async function post(body: unknown, { path = PATH, headers = {} as Record<string, string> } = {}) {
  const response = await fetch(`${server.origin}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer token', ...headers },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

const text = (value: string, more: object = {}) => ({ type: 'text', text: value, ...more });
const cache_control = { type: 'ephemeral' };
const chat = (...messages: unknown[]) => ({
  anthropic_version: 'vertex-2023-10-16',
  max_tokens: 10,
  system: 's',
  messages,
});
const user = { role: 'user', content: [text('hi')] };
const said = (...content: unknown[]) => ({ role: 'assistant', content });
const use = { type: 'tool_use', id: 't', name: 'a', input: {} };
const answer = { type: 'tool_result', tool_use_id: 't', content: 'x' };
const result = { role: 'user', content: [answer] };
const tool = { name: 'a', description: 'd', input_schema: { type: 'object' } };
const without = (key: string) =>
  Object.fromEntries(Object.entries(chat(user)).filter(([name]) => name !== key));

test('a well-formed conversation is answered, and its tokens are counted', async () => {
  const body = {
    ...chat(user, said(use), { role: 'user', content: [answer, text('go on')] }),
    tools: [tool],
  };
  const { status, text: answered } = await post(body);
  expect([status, JSON.parse(answered).content]).toEqual([
    200,
    [{ type: 'text', text: 'ok', citations: null }],
  ]);
  expect(JSON.parse(answered).usage.input_tokens).toBeGreaterThan(0);
});

describe('refused with 400 is', () => {
  test.each([
    ['a missing version', without('anthropic_version')],
    ['a missing length', without('max_tokens')],
    ['a model in the body', { ...chat(user), model: 'claude-opus-5' }],
    ['an unknown field', { ...chat(user), tool_config: {} }],
    ['no message', chat()],
    ['an assistant turn at the start', chat(said(text('x')), user)],
    ['an assistant turn at the end', chat(user, said(text('x')))],
    ['two user turns in a row', chat(user, user)],
    ['an empty turn', chat(user, said(), user)],
    ['an empty text block', chat(user, said(text(''), use), result)],
    ['a blank text block', chat(user, said(text(' \n')), user)],
    ['a breakpoint on an empty text block', chat({ role: 'user', content: [text('', { cache_control })] })],
    ['an empty tool result', chat(user, said(use), { role: 'user', content: [{ ...answer, content: '' }] })],
    ['a call without a result', chat(user, said(use), user)],
    ['a result without a call', chat(user, said(text('x')), result)],
    ['a second result', chat(user, said(use), { role: 'user', content: [answer, answer] })],
    ['text before the results', chat(user, said(use), { role: 'user', content: [text('x'), answer] })],
    ['an id used twice', chat(user, said(use), result, said(use), result)],
    [
      'an id with a dot',
      chat(user, said({ ...use, id: 'a.b' }), { role: 'user', content: [{ ...answer, tool_use_id: 'a.b' }] }),
    ],
    ['input that is no object', chat(user, said({ ...use, input: '{}' }), result)],
    [
      'a made-up signature',
      chat(user, said({ type: 'thinking', thinking: 'x', signature: 'y' }, text('z')), user),
    ],
    [
      'a breakpoint on a thought',
      chat(user, said({ type: 'thinking', thinking: 'x', signature: 'y', cache_control }, text('z')), user),
    ],
    [
      'five breakpoints',
      chat({ role: 'user', content: Array.from({ length: 5 }, () => text('x', { cache_control })) }),
    ],
    [
      'five breakpoints, one of them on a tool',
      {
        ...chat({ role: 'user', content: Array.from({ length: 4 }, () => text('x', { cache_control })) }),
        tools: [{ ...tool, cache_control }],
      },
    ],
    ['an empty list of tools', { ...chat(user), tools: [] }],
    ['two tools of one name', { ...chat(user), tools: [tool, tool] }],
  ])('%s', async (_name, body) => {
    expect((await post(body)).status).toBe(400);
    expect(server.refusals).toHaveLength(1);
    expect(server.requests).toEqual([]);
  });
});

test('the cache reads what an earlier breakpoint wrote, and only the same prefix', async () => {
  const marked = { role: 'user', content: [text('long '.repeat(500), { cache_control })] };
  const usage = async (body: unknown) => JSON.parse((await post(body)).text).usage;
  expect(await usage(chat(marked))).toMatchObject({ cache_read_input_tokens: 0 });
  const second = await usage(
    chat(marked, said(text('x')), { role: 'user', content: [text('y', { cache_control })] }),
  );
  expect(second.cache_read_input_tokens).toBeGreaterThan(500);
  expect(second.cache_creation_input_tokens).toBeLessThan(100);
  expect(await usage({ ...chat(marked), system: 'other' })).toMatchObject({ cache_read_input_tokens: 0 });
});

test.each([
  ['a wrong token', PATH, { authorization: 'Bearer other' }, 401],
  ['a key beside the token', PATH, { 'x-api-key': 'k' }, 401],
  ['another project', PATH.replace('/p/', '/q/'), {}, 404],
  ['an unknown model', PATH.replace('opus', 'x'), {}, 404],
  ['another method', PATH.replace('rawPredict', 'predict'), {}, 404],
])('%s is refused', async (_name, path, headers, status) => {
  expect((await post(chat(user), { path, headers })).status).toBe(status);
});

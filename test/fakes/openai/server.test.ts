import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type OpenAiServer, startOpenAi } from './server.ts';

let server: OpenAiServer;
beforeEach(async () => {
  server = await startOpenAi({ scripts: { m: () => ({ text: 'ok' }) }, apiKey: 'sk-right' });
});
afterEach(() => server.stop());

async function post(body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${server.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer sk-right', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

const user = { role: 'user', content: 'hi' };
const call = { id: 'c', type: 'function', function: { name: 'a', arguments: '{}' } };
const calling = { role: 'assistant', content: null, tool_calls: [call] };
const result = { role: 'tool', tool_call_id: 'c', content: '{}' };
const chat = (...messages: unknown[]) => ({ model: 'm', messages });

test('a well-formed conversation is answered, and its tokens are counted', async () => {
  const { status, text } = await post(chat({ role: 'system', content: 's' }, user, calling, result, user));
  expect([status, JSON.parse(text).choices[0].message.content]).toEqual([200, 'ok']);
  expect(JSON.parse(text).usage.prompt_tokens).toBeGreaterThan(0);
  expect(server.requests).toHaveLength(1);
});

describe('refused with 400 is', () => {
  test.each([
    ['an unknown field', { ...chat(user), tool_choice: 'none' }],
    ['a missing model', { messages: [user] }],
    ['no message', chat()],
    ['an empty tool list', { ...chat(user), tools: [] }],
    ['two user turns in a row', chat(user, user)],
    ['an assistant turn at the start', chat(calling, result)],
    ['an empty assistant turn', chat(user, { role: 'assistant', content: ' ' }, user)],
    ['an assistant turn at the end', chat(user, { role: 'assistant', content: 'x' })],
    ['a system message in the middle', chat(user, { role: 'system', content: 's' })],
    ['a call without a result', chat(user, calling, user)],
    ['a call left open at the end', chat(user, calling)],
    ['a result without a call', chat(user, result)],
    ['a second result for one call', chat(user, calling, result, result)],
    ['an id used twice', chat(user, calling, result, calling, result)],
    [
      'arguments as an object',
      chat(user, { ...calling, tool_calls: [{ ...call, function: { name: 'a', arguments: {} } }] }, result),
    ],
    [
      'arguments that are no object',
      chat(user, { ...calling, tool_calls: [{ ...call, function: { name: 'a', arguments: '[]' } }] }, result),
    ],
    ['an empty list of calls', chat(user, { ...calling, tool_calls: [] }, user)],
    [
      'a tool name with a dot',
      {
        ...chat(user),
        tools: [
          { type: 'function', function: { name: 'a.b', description: '', parameters: { type: 'object' } } },
        ],
      },
    ],
    ['a body that is no JSON', '{'],
  ])('%s', async (_name, body) => {
    expect((await post(body)).status).toBe(400);
    expect(server.refusals).toHaveLength(1);
    expect(server.requests).toHaveLength(0);
  });
});

test('a wrong key, model, path, method and content type are refused as real servers do', async () => {
  expect((await post(chat(user), { authorization: 'Bearer wrong' })).status).toBe(401);
  expect((await post({ ...chat(user), model: 'other' })).status).toBe(404);
  expect((await post(chat(user), { 'content-type': 'text/plain' })).status).toBe(415);
  expect((await fetch(`${server.url}/completions`, { method: 'POST' })).status).toBe(404);
  expect((await fetch(`${server.url}/chat/completions`)).status).toBe(405);
});

test('faults are used up in order', async () => {
  server.faults.push({ kind: 'Status', status: 503 }, { kind: 'Garbage', text: '<html>' }, { kind: 'Drop' });
  expect((await post(chat(user))).status).toBe(503);
  expect((await post(chat(user))).text).toBe('<html>');
  await expect(post(chat(user))).rejects.toThrow();
  expect((await post(chat(user))).status).toBe(200);
});

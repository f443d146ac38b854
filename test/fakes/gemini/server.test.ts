import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type GeminiServer, startGemini } from './server.ts';

let server: GeminiServer;
beforeEach(async () => {
  server = await startGemini({
    scripts: {
      'gemini-3-pro': () => ({ text: 'ok' }),
      'gemini-2.5-pro': () => ({ toolCalls: [{ name: 'a', args: {} }] }),
    },
    apiKey: 'key',
    vertex: { isToken: (token) => token === 'token', project: 'p', location: 'global' },
  });
});
afterEach(() => server.stop());

const DEVELOPER = '/v1beta/models/gemini-3-pro:generateContent';
const VERTEX = '/v1/projects/p/locations/global/publishers/google/models/gemini-3-pro:generateContent';

async function post(body: unknown, { path = DEVELOPER, headers = {} as Record<string, string> } = {}) {
  const auth = path.startsWith('/v1beta') ? { 'x-goog-api-key': 'key' } : { authorization: 'Bearer token' };
  const response = await fetch(`${server.origin}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...auth, ...headers },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

const systemInstruction = { parts: [{ text: 's' }] };
const chat = (...contents: unknown[]) => ({ systemInstruction, contents });
const user = { role: 'user', parts: [{ text: 'hi' }] };
const functionCall = { name: 'a', args: {} };
const thoughtSignature = 'skip_thought_signature_validator';
const calling = { role: 'model', parts: [{ functionCall, thoughtSignature }] };
const result = { role: 'user', parts: [{ functionResponse: { name: 'a', response: {} } }] };
const withTool = (schema: unknown) => ({
  ...chat(user),
  tools: [{ functionDeclarations: [{ name: 'a', description: 'd', parametersJsonSchema: schema }] }],
});

test('a well-formed conversation is answered on both addresses, and its tokens are counted', async () => {
  for (const path of [DEVELOPER, VERTEX]) {
    const { status, text } = await post(chat(user, calling, result, user), { path });
    expect([status, JSON.parse(text).candidates[0].content.parts]).toEqual([200, [{ text: 'ok' }]]);
    expect(JSON.parse(text).usageMetadata.promptTokenCount).toBeGreaterThan(0);
  }
});

describe('refused with 400 is', () => {
  test.each([
    ['an unknown field', { ...chat(user), toolConfig: {} }],
    ['no content', chat()],
    ['a model turn at the start', chat(calling, result)],
    ['a model turn at the end', chat(user, { role: 'model', parts: [{ text: 'x' }] })],
    ['two model turns in a row', chat(user, { role: 'model', parts: [{ text: 'x' }] }, calling, result)],
    ['an entry without parts', chat(user, { role: 'model', parts: [] }, user)],
    ['a part with two kinds of data', chat({ role: 'user', parts: [{ text: 'x', functionCall }] })],
    ['the role function', chat(user, calling, { ...result, role: 'function' })],
    ['a call without a response', chat(user, calling, user)],
    ['a response without a call', chat(user, result)],
    [
      'fewer responses than calls',
      chat(user, { role: 'model', parts: [...calling.parts, { functionCall }] }, result),
    ],
    [
      'a response of another name',
      chat(user, calling, { role: 'user', parts: [{ functionResponse: { name: 'b', response: {} } }] }),
    ],
    [
      'a response with an id of its own',
      chat(user, calling, {
        role: 'user',
        parts: [{ functionResponse: { id: 'x', name: 'a', response: {} } }],
      }),
    ],
    ['a call without a signature', chat(user, { role: 'model', parts: [{ functionCall }] }, result)],
    [
      'a made-up signature',
      chat(user, { role: 'model', parts: [{ functionCall, thoughtSignature: 'x' }] }, result),
    ],
    [
      'a keyword of another dialect',
      withTool({ type: 'object', properties: { x: { type: 'string', pattern: 'x' } } }),
    ],
    ['parameters that are no object', withTool({ type: 'string' })],
    ['an empty list of tools', { ...chat(user), tools: [] }],
  ])('%s', async (_name, body) => {
    expect((await post(body)).status).toBe(400);
    expect(server.refusals).toHaveLength(1);
    expect(server.requests).toEqual([]);
  });

  test('an id of a call on Vertex', async () => {
    const withId = {
      role: 'model',
      parts: [{ functionCall: { id: 'x', ...functionCall }, thoughtSignature }],
    };
    const { status, text } = await post(
      chat(user, withId, {
        role: 'user',
        parts: [{ functionResponse: { id: 'x', name: 'a', response: {} } }],
      }),
      { path: VERTEX },
    );
    expect([status, text]).toEqual([400, expect.stringContaining('Unknown name')]);
  });

  test('a key in the address', async () => {
    expect((await post(chat(user), { path: `${DEVELOPER}?key=key` })).status).toBe(400);
  });
});

test('a changed call is refused by its signature', async () => {
  const path = DEVELOPER.replace('3', '2.5');
  const answer = JSON.parse((await post(chat(user), { path })).text).candidates[0].content;
  const responses = {
    role: 'user',
    parts: [{ functionResponse: { id: 'fc-1-0', name: 'a', response: {} } }],
  };
  expect((await post(chat(user, answer, responses), { path })).status).toBe(200);
  answer.parts[0].functionCall.args = { changed: true };
  expect((await post(chat(user, answer, responses), { path })).text).toContain('Corrupted thought signature');
});

test.each([
  ['a wrong key', DEVELOPER, { 'x-goog-api-key': 'other' }, 400],
  ['a token for a key', DEVELOPER, { authorization: 'Bearer token' }, 401],
  ['a wrong token', VERTEX, { authorization: 'Bearer other' }, 401],
  ['a key for a token', VERTEX, { 'x-goog-api-key': 'key' }, 401],
  ['another project', VERTEX.replace('/p/', '/q/'), {}, 404],
  ['an unknown model', DEVELOPER.replace('pro', 'x'), {}, 404],
])('%s is refused', async (_name, path, headers, status) => {
  expect((await post(chat(user), { path, headers })).status).toBe(status);
});

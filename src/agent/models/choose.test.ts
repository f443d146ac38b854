import { afterAll, describe, expect, test } from 'vitest';
import { createHttpClient } from '../../http/client.ts';
import { chooseModel, type ModelChoice, providerOf } from './choose.ts';
import type { GoogleAccess } from './vertex/credentials.ts';

const http = createHttpClient();
afterAll(() => http.close());

const access: GoogleAccess = { project: async () => 'p', token: async () => 'token' };
const vertex = { project: 'p', access };

describe('the provider', () => {
  test.each([
    [{ name: 'gemini-3-pro' }, 'Gemini'],
    [{ name: 'gemini-3-pro', vertex }, 'GeminiVertex'],
    [{ name: 'gemini-3-pro', vertex, apiKey: 'k' }, 'Gemini'],
    [{ name: 'claude-opus-5@20260401' }, 'AnthropicVertex'],
    [{ name: 'qwen3', vertex }, 'OpenAICompatible'],
  ] as [ModelChoice, string][])('of %j is %s', ({ name, ...given }, provider) => {
    expect(providerOf(name, given)).toBe(provider);
  });
});

test.each([
  [{ name: 'gemini-3-pro', apiKey: 'k' }, 'gcp.gemini'],
  [{ name: 'gemini-3-pro', vertex }, 'gcp.gemini'],
  [{ name: 'tuned-model', provider: 'GeminiVertex', vertex }, 'gcp.gemini'],
  [{ name: 'claude-opus-5', vertex, maxOutputTokens: 500 }, 'anthropic'],
  [{ name: 'gemini-x', provider: 'OpenAICompatible', baseUrl: 'http://localhost:1/v1' }, 'openai'],
] as [ModelChoice, string][])('%j is asked by %s', (choice, provider) => {
  expect(chooseModel(choice, { http })).toMatchObject({ name: choice.name, provider });
});

test.each([
  [{ name: 'gemini-3-pro' }, /has no API key: set model\.apiKeySecretRef, or provider GeminiVertex/],
  [
    { name: 'gemini-3-pro', provider: 'GeminiVertex' },
    /no Google Cloud account was given: set model\.vertex/,
  ],
  [{ name: 'claude-opus-5', vertex: { access } }, /project .* is not known: set model\.vertex\.project/],
  [{ name: 'qwen3' }, /has no base URL: set model\.baseURL/],
  [{ name: 'qwen3', baseUrl: 'localhost' }, /is not a URL: localhost/],
] as [ModelChoice, RegExp][])('%j is refused, saying what to mend', (choice, message) => {
  expect(() => chooseModel(choice, { http })).toThrow(message);
});

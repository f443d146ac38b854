import { createAnthropicVertexModel } from '../../src/agent/models/anthropic/adapter.ts';
import { createGeminiModel } from '../../src/agent/models/gemini/adapter.ts';
import { createOpenAiModel } from '../../src/agent/models/openai/adapter.ts';
import type { Model } from '../../src/agent/models/port.ts';
import type { GoogleAccess } from '../../src/agent/models/vertex/credentials.ts';
import type { HttpClient } from '../../src/http/client.ts';
import { startAnthropic } from './anthropic/server.ts';
import { startGemini } from './gemini/server.ts';
import type { Fault, ScriptedTurn } from './model-http.ts';
import { startOpenAi } from './openai/server.ts';

/** One provider's adapter before the stand-in of its API. */
export interface ProviderUnderTest {
  readonly model: Model;
  /** The same service, asked with a wrong key or token. */
  readonly stranger: Model;
  /** Another instance that gives up after this time. */
  hasty(timeoutMs: number): Model;
  /** Bodies that the service accepted. */
  readonly requests: readonly object[];
  readonly refusals: readonly { readonly status: number; readonly message: string }[];
  readonly faults: (Fault | undefined)[];
  stop(): Promise<void>;
}

export interface Provider {
  readonly name: string;
  /** In the API's own words. */
  readonly words: { readonly stop: string; readonly length: string; readonly safety: string };
  start(http: HttpClient, script: (call: number) => ScriptedTurn): Promise<ProviderUnderTest>;
}

const SECRET = 'secret-of-the-model';
const WRONG = 'wrong-secret-of-the-model';
const place = (origin: string) => ({ project: 'p', location: 'global', origin });
const vertex = { isToken: (token: string) => token === SECRET, project: 'p', location: 'global' };
const accessWith = (token: string): GoogleAccess => ({ project: async () => 'p', token: async () => token });

export const PROVIDERS: readonly Provider[] = [
  {
    name: 'OpenAI-compatible',
    words: { stop: 'stop', length: 'length', safety: 'content_filter' },
    async start(http, script) {
      const server = await startOpenAi({ scripts: { m: (_, call) => script(call) }, apiKey: SECRET });
      const create = (apiKey: string, timeoutMs?: number) =>
        createOpenAiModel({ name: 'm', baseUrl: server.url, apiKey, http, ...(timeoutMs && { timeoutMs }) });
      return { ...server, model: create(SECRET), stranger: create(WRONG), hasty: (ms) => create(SECRET, ms) };
    },
  },
  {
    name: 'Gemini with an API key',
    words: { stop: 'STOP', length: 'MAX_TOKENS', safety: 'SAFETY' },
    async start(http, script) {
      const name = 'gemini-3-pro-preview';
      const server = await startGemini({ scripts: { [name]: (_, call) => script(call) }, apiKey: SECRET });
      const create = (apiKey: string, timeoutMs?: number) =>
        createGeminiModel({
          name,
          http,
          service: { kind: 'DeveloperApi', apiKey, origin: server.origin },
          ...(timeoutMs && { timeoutMs }),
        });
      return { ...server, model: create(SECRET), stranger: create(WRONG), hasty: (ms) => create(SECRET, ms) };
    },
  },
  {
    name: 'Gemini on Vertex',
    words: { stop: 'STOP', length: 'MAX_TOKENS', safety: 'SAFETY' },
    async start(http, script) {
      const name = 'gemini-3-pro-preview';
      const server = await startGemini({ scripts: { [name]: (_, call) => script(call) }, vertex });
      const create = (token: string, timeoutMs?: number) =>
        createGeminiModel({
          name,
          http,
          service: { kind: 'Vertex', place: place(server.origin), access: accessWith(token) },
          ...(timeoutMs && { timeoutMs }),
        });
      return { ...server, model: create(SECRET), stranger: create(WRONG), hasty: (ms) => create(SECRET, ms) };
    },
  },
  {
    name: 'Anthropic on Vertex',
    words: { stop: 'end_turn', length: 'max_tokens', safety: 'refusal' },
    async start(http, script) {
      const name = 'claude-opus-5';
      const server = await startAnthropic({ scripts: { [name]: (_, call) => script(call) }, vertex });
      const create = (token: string, timeoutMs?: number) =>
        createAnthropicVertexModel({
          name,
          http,
          place: place(server.origin),
          access: accessWith(token),
          ...(timeoutMs && { timeoutMs }),
        });
      return { ...server, model: create(SECRET), stranger: create(WRONG), hasty: (ms) => create(SECRET, ms) };
    },
  },
];

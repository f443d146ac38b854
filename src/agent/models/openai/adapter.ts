import type { HttpClient } from '../../../http/client.ts';
import { jsonBytes } from '../../json-bytes.ts';
import { type Endpoint, errorInBody } from '../errors.ts';
import type { Contents, GenerateRequest, Model, ModelResponse } from '../port.ts';
import { postJson, postPlainer, shapeError } from '../post.ts';
import { readAnswer, readFormAnswer } from './answer.ts';
import { fromCanonical, toCanonical } from './canonical.ts';
import { chatRequest, withoutTemperature } from './request.ts';
import { type ChatMessage, type ChatRequest, chatResponseSchema } from './wire.ts';

export interface OpenAiOptions {
  readonly name: string;
  /** Up to and with the version, e.g. `http://localhost:8000/v1`. */
  readonly baseUrl: string;
  /** Local servers often want none. */
  readonly apiKey?: string;
  readonly http: HttpClient;
  /** One answer may take this long. Default 5 minutes: slow local models with a long conversation. */
  readonly timeoutMs?: number;
  /** Left to the server when absent: names and ceilings of this setting differ between servers. */
  readonly maxOutputTokens?: number;
  /** `low`, `medium`, `high`, or what else the server knows; absent: its own choice. */
  readonly reasoningEffort?: string;
}

const DEFAULT_TIMEOUT_MS = 300_000;

/** Chat completions as OpenAI, vLLM, llama.cpp, Ollama and others serve them; not streamed. */
export function createOpenAiModel(options: OpenAiOptions): Model {
  const { name, http, apiKey, maxOutputTokens, reasoningEffort, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const endpoint: Endpoint = {
    model: name,
    url: `${options.baseUrl.replace(/\/+$/, '')}/chat/completions`,
    advise,
    adviceOnGarbage: 'Check that the base URL is that of an OpenAI-compatible API.',
  };
  const headers = apiKey ? { authorization: `Bearer ${apiKey}` } : {};

  async function generate(request: GenerateRequest): Promise<ModelResponse> {
    const history = historyOf(request.contents);
    const asked: ChatRequest = {
      ...chatRequest(name, request, history, maxOutputTokens),
      ...(reasoningEffort !== undefined && { reasoning_effort: reasoningEffort }),
    };
    const send = (sent: ChatRequest) =>
      postJson(http, endpoint, jsonBytes(sent, ['messages']), { headers, timeoutMs, signal: request.signal });
    const body = await postPlainer(asked, send, /temperature/i, withoutTemperature);
    const parsed = chatResponseSchema.safeParse(body);
    if (!parsed.success) throw shapeError(parsed.error.issues, endpoint);
    if (parsed.data.error) throw errorInBody(body, endpoint);
    if (request.answer !== undefined) return readFormAnswer(parsed.data, history);
    return readAnswer(parsed.data, history);
  }

  return {
    name,
    provider: 'openai',
    generate,
    makeUserContent: (text): ChatMessage => ({ role: 'user', content: text }),
    makeToolResponses: (results): readonly ChatMessage[] =>
      results.map(({ call, result }) => ({
        role: 'tool',
        tool_call_id: call.id,
        content: JSON.stringify(result),
      })),
    toCanonical: (contents) => toCanonical(historyOf(contents)),
    fromCanonical,
  };
}

function advise(status: number | undefined): string {
  switch (status) {
    case 401:
    case 403:
      return 'Check the API key and what it may use.';
    case 404:
      return 'Check the base URL (usually ending in /v1) and the model name.';
    default:
      return '';
  }
}

/** Contents are opaque to everybody else, so each entry was made here (or came back through a checkpoint). */
function historyOf(contents: Contents): readonly ChatMessage[] {
  return contents as readonly ChatMessage[];
}

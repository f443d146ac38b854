import { type HttpClient, HttpError } from '../../../http/client.ts';
import type { Contents, GenerateRequest, Model, ModelResponse } from '../port.ts';
import { readAnswer } from './answer.ts';
import { fromCanonical, toCanonical } from './canonical.ts';
import { type Endpoint, errorInBody, modelError, unreadableAnswer } from './errors.ts';
import { chatRequest } from './request.ts';
import { type ChatMessage, chatResponseSchema } from './wire.ts';

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
}

const DEFAULT_TIMEOUT_MS = 300_000;
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

/** Chat completions as OpenAI, vLLM, llama.cpp, Ollama and others serve them; not streamed. */
export function createOpenAiModel(options: OpenAiOptions): Model {
  const { name, http, apiKey, maxOutputTokens, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const endpoint: Endpoint = { model: name, url: `${options.baseUrl.replace(/\/+$/, '')}/chat/completions` };

  async function post(body: string, signal: AbortSignal | undefined): Promise<unknown> {
    try {
      const response = await http.request({
        method: 'POST',
        url: endpoint.url,
        headers: {
          'content-type': 'application/json',
          accept: 'application/json',
          ...(apiKey && { authorization: `Bearer ${apiKey}` }),
        },
        body,
        timeoutMs,
        maxBytes: MAX_ANSWER_BYTES,
        // The loop repeats model calls itself, at its own pace.
        retry: false,
        ...(signal && { signal }),
      });
      return response.json();
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof HttpError && error.code === 'NotJson')
        throw unreadableAnswer('not JSON', endpoint, error);
      throw modelError(error, endpoint) ?? error;
    }
  }

  async function generate(request: GenerateRequest): Promise<ModelResponse> {
    const history = historyOf(request.contents);
    const body = await post(
      JSON.stringify(chatRequest(name, request, history, maxOutputTokens)),
      request.signal,
    );
    const parsed = chatResponseSchema.safeParse(body);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      const where = issue?.path.map(String).join('.') || 'the top level';
      throw unreadableAnswer(`${where}: ${issue?.message ?? 'unknown fault'}`, endpoint);
    }
    if (parsed.data.error) throw errorInBody(body, endpoint);
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

/** Contents are opaque to everybody else, so each entry was made here (or came back through a checkpoint). */
function historyOf(contents: Contents): readonly ChatMessage[] {
  return contents as readonly ChatMessage[];
}

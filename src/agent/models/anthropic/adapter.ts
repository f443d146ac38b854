import type { HttpClient } from '../../../http/client.ts';
import { jsonBytes } from '../../json-bytes.ts';
import { type Endpoint, errorInBody } from '../errors.ts';
import type { Contents, GenerateRequest, Model, ModelResponse } from '../port.ts';
import { postJson, postSigned, shapeError } from '../post.ts';
import type { GoogleAccess } from '../vertex/credentials.ts';
import { adviseOnVertex, type VertexPlace, vertexUrl } from '../vertex/endpoint.ts';
import { readAnswer, readFormAnswer } from './answer.ts';
import { SlidingBreakpoints } from './cache.ts';
import { fromCanonical, toCanonical } from './canonical.ts';
import { messagesBody, withoutThinking } from './request.ts';
import { type AnthropicMessage, type MessagesBody, messageResponseSchema } from './wire.ts';

export interface AnthropicVertexOptions {
  readonly name: string;
  readonly http: HttpClient;
  readonly place: VertexPlace;
  readonly access: GoogleAccess;
  /** One answer may take this long. Default 10 minutes: the default length at some 30 tokens a second. */
  readonly timeoutMs?: number;
  /** The API wants a figure. Default 16384: room for thoughts and a report, within every current model's limit. */
  readonly maxOutputTokens?: number;
}

const DEFAULT_TIMEOUT_MS = 600_000;
const DEFAULT_MAX_OUTPUT_TOKENS = 16_384;

/**
 * Claude by the Messages API on Vertex AI (`rawPredict`); not streamed. An instance belongs to one conversation:
 * it remembers where the prompt cache was written.
 */
export function createAnthropicVertexModel(options: AnthropicVertexOptions): Model {
  const { name, http, place, access, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const { maxOutputTokens = DEFAULT_MAX_OUTPUT_TOKENS } = options;
  const breakpoints = new SlidingBreakpoints();
  const endpoint: Endpoint = {
    model: name,
    url: vertexUrl(place, 'anthropic', name, 'rawPredict'),
    advise: (status) =>
      status === 529 ? 'The service is overloaded.' : adviseOnVertex(status, place.location),
    adviceOnGarbage: 'Check model.vertex.location.',
  };

  async function generate(request: GenerateRequest): Promise<ModelResponse> {
    const history = historyOf(request.contents);
    const isEphemeral = request.ephemeral !== undefined;
    const body = messagesBody(request, history, {
      maxOutputTokens,
      breakpoints: breakpoints.positions(history.length, isEphemeral),
    });
    const headers = { authorization: `Bearer ${await access.token()}` };
    const send = (sent: MessagesBody) =>
      postJson(http, endpoint, jsonBytes(sent, ['messages']), { headers, timeoutMs, signal: request.signal });
    const answer = await postSigned(body, send, withoutThinking);
    const parsed = messageResponseSchema.safeParse(answer);
    if (!parsed.success) throw shapeError(parsed.error.issues, endpoint);
    if (parsed.data.error) throw errorInBody(answer, endpoint);
    breakpoints.answered(history.length, isEphemeral);
    if (request.answer !== undefined) return readFormAnswer(parsed.data, request.answer.name);
    return readAnswer(parsed.data);
  }

  return {
    name,
    provider: 'anthropic',
    generate,
    makeUserContent: (text): AnthropicMessage => ({ role: 'user', content: [{ type: 'text', text }] }),
    makeToolResponses: (results): readonly AnthropicMessage[] => [
      {
        role: 'user',
        content: results.map(({ call, result }) => ({
          type: 'tool_result',
          tool_use_id: call.id,
          content: JSON.stringify(result),
        })),
      },
    ],
    toCanonical: (contents) => toCanonical(historyOf(contents)),
    fromCanonical,
  };
}

/** Contents are opaque to everybody else, so each entry was made here (or came back through a checkpoint). */
function historyOf(contents: Contents): readonly AnthropicMessage[] {
  return contents as readonly AnthropicMessage[];
}

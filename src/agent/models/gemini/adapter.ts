import type { HttpClient } from '../../../http/client.ts';
import { jsonBytes } from '../../json-bytes.ts';
import { type Endpoint, errorInBody } from '../errors.ts';
import type { Contents, GenerateRequest, Model, ModelResponse } from '../port.ts';
import { postJson, postSigned, shapeError } from '../post.ts';
import type { GoogleAccess } from '../vertex/credentials.ts';
import { adviseOnVertex, type VertexPlace, vertexUrl } from '../vertex/endpoint.ts';
import { readAnswer } from './answer.ts';
import { fromCanonical, toCanonical } from './canonical.ts';
import { type Dialect, generateBody, withoutSignatures } from './request.ts';
import { type GeminiContent, type GenerateBody, generateResponseSchema } from './wire.ts';

export interface GeminiOptions {
  readonly name: string;
  readonly http: HttpClient;
  readonly service: GeminiService;
  /** One answer may take this long. Default 5 minutes. */
  readonly timeoutMs?: number;
  /** The model's own limit when absent. */
  readonly maxOutputTokens?: number;
}

export type GeminiService =
  /** The Gemini Developer API; `origin` replaces Google's host. */
  | { readonly kind: 'DeveloperApi'; readonly apiKey: string; readonly origin?: string }
  | { readonly kind: 'Vertex'; readonly place: VertexPlace; readonly access: GoogleAccess };

const DEFAULT_TIMEOUT_MS = 300_000;
const DEVELOPER_API = 'https://generativelanguage.googleapis.com';

/** Gemini's `generateContent`, with an API key or on Vertex AI; not streamed. */
export function createGeminiModel(options: GeminiOptions): Model {
  const { name, http, service, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const endpoint = endpointOf(name, service);
  const dialect: Dialect = {
    callIds: service.kind === 'DeveloperApi',
    signedCalls: signsCalls(name),
    maxOutputTokens: options.maxOutputTokens,
    sent: new WeakMap(),
  };

  async function generate(request: GenerateRequest): Promise<ModelResponse> {
    const history = historyOf(request.contents);
    const headers = await authorization(service);
    const send = (sent: GenerateBody) =>
      postJson(http, endpoint, jsonBytes(sent, ['contents']), { headers, timeoutMs, signal: request.signal });
    const body = await postSigned(generateBody(request, history, dialect), send, (refused) =>
      withoutSignatures(refused, dialect),
    );
    const parsed = generateResponseSchema.safeParse(body);
    if (!parsed.success) throw shapeError(parsed.error.issues, endpoint);
    if (parsed.data.error) throw errorInBody(body, endpoint);
    return readAnswer(parsed.data, history);
  }

  return {
    name,
    provider: 'gcp.gemini',
    generate,
    makeUserContent: (text): GeminiContent => ({ role: 'user', parts: [{ text }] }),
    makeToolResponses: (results): readonly GeminiContent[] => [
      {
        role: 'user',
        parts: results.map(({ call, result }) => ({
          functionResponse: { id: call.id, name: call.name, response: result },
        })),
      },
    ],
    toCanonical,
    fromCanonical,
  };
}

function endpointOf(model: string, service: GeminiService): Endpoint {
  if (service.kind === 'Vertex') {
    return {
      model,
      url: vertexUrl(service.place, 'google', model, 'generateContent'),
      advise: (status) => adviseOnVertex(status, service.place.location),
      adviceOnGarbage: 'Check model.vertex.location.',
    };
  }
  const origin = (service.origin ?? DEVELOPER_API).replace(/\/+$/, '');
  return {
    model,
    url: `${origin}/v1beta/models/${encodeURIComponent(model)}:generateContent`,
    advise: adviseOnDeveloperApi,
    adviceOnGarbage: 'Check what stands between the operator and Google (a proxy, a gateway).',
  };
}

/** The key in a header: addresses end up in logs. */
async function authorization(service: GeminiService): Promise<Readonly<Record<string, string>>> {
  if (service.kind === 'DeveloperApi') return { 'x-goog-api-key': service.apiKey };
  return { authorization: `Bearer ${await service.access.token()}` };
}

/** From the third generation on. Names without a number (`gemini-flash-latest`) mean the newest. */
function signsCalls(model: string): boolean {
  const generation = /^gemini-(\d+)/.exec(model)?.[1];
  return model.startsWith('gemini-') && (generation === undefined || Number(generation) >= 3);
}

function adviseOnDeveloperApi(status: number | undefined, said: string): string {
  if (/API key/i.test(said) || status === 401 || status === 403)
    return 'Check the API key and what it may use.';
  return status === 404 ? 'Check the model name.' : '';
}

/** Contents are opaque to everybody else, so each entry was made here (or came back through a checkpoint). */
function historyOf(contents: Contents): readonly GeminiContent[] {
  return contents as readonly GeminiContent[];
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  applyFault,
  type Fault,
  listen,
  parseJson,
  readBody,
  type ScriptedTurn,
  sendJson,
  usageOf,
} from '../model-http.ts';
import { checkRequest, type GeminiRequestBody, signedText } from './check.ts';

export type { Fault, ScriptedTurn } from '../model-http.ts';

export type GeminiScript = (request: GeminiRequestBody, call: number) => ScriptedTurn | Promise<ScriptedTurn>;

export interface GeminiServer {
  /** Scheme and authority. */
  readonly origin: string;
  readonly requests: readonly GeminiRequestBody[];
  readonly refusals: readonly { readonly status: number; readonly message: string }[];
  /** Consumed in order, one for each request, before the script is asked. `undefined` lets one request pass. */
  readonly faults: (Fault | undefined)[];
  stop(): Promise<void>;
}

export interface GeminiServerOptions {
  /** By model name. */
  readonly scripts: Readonly<Record<string, GeminiScript>>;
  /** Of the Developer API. */
  readonly apiKey?: string;
  /** Of Vertex: whether this access token is good, and the only project and location. */
  readonly vertex?: {
    readonly isToken: (token: string) => boolean;
    readonly project: string;
    readonly location: string;
  };
}

interface Address {
  readonly service: 'DeveloperApi' | 'Vertex';
  readonly model: string;
}

/**
 * Gemini's generateContent on both of its addresses, answered from scripts. Gives calls ids and signatures as the
 * real services do and wants them back unchanged. A stand-in for tests: there is no model behind it.
 */
export async function startGemini(options: GeminiServerOptions): Promise<GeminiServer> {
  const requests: GeminiRequestBody[] = [];
  const refusals: { status: number; message: string }[] = [];
  const faults: (Fault | undefined)[] = [];
  const signatures = new Map<string, string>();
  let calls = 0;

  const refuse = (response: ServerResponse, code: number, message: string): void => {
    refusals.push({ status: code, message });
    sendJson(response, code, { error: { code, message, status: STATUS_WORDS[code] ?? 'INVALID_ARGUMENT' } });
  };

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const body = await readBody(request);
    if (await applyFault(faults.shift(), response)) return;
    const address = addressOf(url.pathname, options);
    if (!address) return refuse(response, 404, `Requested entity was not found: ${url.pathname}`);
    if (request.method !== 'POST') return refuse(response, 405, `Method ${request.method} not allowed`);
    if (url.search !== '') return refuse(response, 400, 'Credentials belong in a header');
    const denial = denialOf(address, request, options);
    if (denial) return refuse(response, ...denial);

    const checked = checkRequest(parseJson(body), {
      service: address.service,
      signedCalls: /^gemini-[3-9]/.test(address.model),
      signatures,
    });
    if (!checked.ok) return refuse(response, 400, checked.message);
    const script = options.scripts[address.model];
    if (!script) return refuse(response, 404, `models/${address.model} is not found`);
    requests.push(checked.request);
    calls += 1;
    const turn = await script(checked.request, calls);
    sendJson(response, 200, answer(address, calls, checked.request, turn, signatures));
  }

  return { ...(await listen(handle)), requests, refusals, faults };
}

const STATUS_WORDS: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
};

function addressOf(path: string, { vertex }: GeminiServerOptions): Address | undefined {
  const developer = /^\/v1beta\/models\/([^/:]+):generateContent$/.exec(path)?.[1];
  if (developer) return { service: 'DeveloperApi', model: developer };
  const prefix = `/v1/projects/${vertex?.project}/locations/${vertex?.location}/publishers/google/models/`;
  const onVertex =
    path.startsWith(prefix) && /^([^/:]+):generateContent$/.exec(path.slice(prefix.length))?.[1];
  return vertex && onVertex ? { service: 'Vertex', model: onVertex } : undefined;
}

function denialOf(
  { service }: Address,
  { headers }: IncomingMessage,
  { apiKey, vertex }: GeminiServerOptions,
): [number, string] | undefined {
  if (service === 'DeveloperApi') {
    if (headers.authorization) return [401, 'Expected an API key, not OAuth 2 access token'];
    const right = apiKey !== undefined && headers['x-goog-api-key'] === apiKey;
    return right ? undefined : [400, 'API key not valid. Please pass a valid API key.'];
  }
  if (headers['x-goog-api-key']) return [401, 'API keys are not supported by this API'];
  const [, token] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? [];
  return token && vertex?.isToken(token)
    ? undefined
    : [401, 'Request had invalid authentication credentials.'];
}

function answer(
  { service, model }: Address,
  call: number,
  request: GeminiRequestBody,
  turn: ScriptedTurn,
  signatures: Map<string, string>,
): unknown {
  if ('raw' in turn) return turn.raw;
  const callParts = (turn.toolCalls ?? []).map(({ name, args }, index) => {
    const id = `fc-${call}-${index}`;
    const functionCall = { ...(service === 'DeveloperApi' && { id }), name, args };
    // Of calls side by side only the first is signed.
    return index === 0
      ? { functionCall, thoughtSignature: sign({ name, args }, call, signatures) }
      : { functionCall };
  });
  const parts = [...(turn.text === undefined ? [] : [{ text: turn.text }]), ...callParts];
  const usage = usageOf(request, turn);
  return {
    candidates: [{ content: { role: 'model', parts }, finishReason: turn.finishReason ?? 'STOP', index: 0 }],
    usageMetadata: {
      promptTokenCount: usage.prompt,
      candidatesTokenCount: usage.completion,
      totalTokenCount: usage.prompt + usage.completion,
      ...(usage.cached !== undefined && { cachedContentTokenCount: usage.cached }),
    },
    modelVersion: model,
    responseId: `response-${call}`,
  };
}

function sign(
  call: Parameters<typeof signedText>[0],
  number: number,
  signatures: Map<string, string>,
): string {
  const thoughtSignature = Buffer.from(`signature ${number}`).toString('base64');
  signatures.set(thoughtSignature, signedText(call));
  return thoughtSignature;
}

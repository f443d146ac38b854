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
import { type ChatRequestBody, checkRequest } from './check.ts';

export type { Fault, ScriptedTurn } from '../model-http.ts';

/** One model. Called with the checked request, so that it can look at what tools really returned. */
export type Script = (request: ChatRequestBody, call: number) => ScriptedTurn | Promise<ScriptedTurn>;

export interface OpenAiServer {
  /** Base URL ending in /v1. */
  readonly url: string;
  readonly requests: readonly ChatRequestBody[];
  /** What was refused, with its reason: empty after a well-behaved client. */
  readonly refusals: readonly { readonly status: number; readonly message: string }[];
  /** Consumed in order, one for each request, before the script is asked. `undefined` lets one request pass. */
  readonly faults: (Fault | undefined)[];
  stop(): Promise<void>;
}

export interface OpenAiServerOptions {
  /** By model name. */
  readonly scripts: Readonly<Record<string, Script>>;
  /** When set, requests without exactly this bearer token are refused with 401. */
  readonly apiKey?: string;
  readonly port?: number;
  readonly host?: string;
}

/**
 * An OpenAI-compatible chat completions server that answers from scripts and refuses what real servers refuse.
 * A stand-in for tests and the demo: there is no model behind it.
 */
export async function startOpenAi(options: OpenAiServerOptions): Promise<OpenAiServer> {
  const requests: ChatRequestBody[] = [];
  const refusals: { status: number; message: string }[] = [];
  const faults: (Fault | undefined)[] = [];
  let calls = 0;

  const refuse = (
    response: ServerResponse,
    status: number,
    message: string,
    code: string | null = null,
  ): void => {
    refusals.push({ status, message });
    const type = status === 401 ? 'authentication_error' : 'invalid_request_error';
    sendJson(response, status, { error: { message, type, param: null, code } });
  };

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const authorised = !options.apiKey || request.headers.authorization === `Bearer ${options.apiKey}`;
    if (pathname === '/v1/models' && request.method === 'GET') {
      if (!authorised) return refuse(response, 401, 'Incorrect API key provided.', 'invalid_api_key');
      const data = Object.keys(options.scripts).map((id) => ({ id, object: 'model', owned_by: 'scripts' }));
      return sendJson(response, 200, { object: 'list', data });
    }
    if (pathname !== '/v1/chat/completions') return refuse(response, 404, `Unknown path ${pathname}`);
    if (request.method !== 'POST') return refuse(response, 405, `Method ${request.method} not allowed`);
    const body = await readBody(request);

    if (await applyFault(faults.shift(), response)) return;

    if (!authorised) return refuse(response, 401, 'Incorrect API key provided.', 'invalid_api_key');
    if (!request.headers['content-type']?.startsWith('application/json')) {
      return refuse(response, 415, 'The content type must be application/json');
    }
    const checked = checkRequest(parseJson(body));
    if (!checked.ok) return refuse(response, 400, checked.message);
    const { model } = checked.request;
    const script = options.scripts[model];
    if (!script) return refuse(response, 404, `The model '${model}' does not exist`, 'model_not_found');
    requests.push(checked.request);
    calls += 1;
    sendJson(response, 200, completion(model, calls, checked.request, await script(checked.request, calls)));
  }

  const { origin, stop } = await listen(handle, options);
  return { url: `${origin}/v1`, requests, refusals, faults, stop };
}

function completion(model: string, call: number, request: ChatRequestBody, turn: ScriptedTurn): unknown {
  if ('raw' in turn) return turn.raw;
  const toolCalls = turn.toolCalls?.map(({ name, args }, index) => ({
    id: `call_${call}_${index}_script`,
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  }));
  const usage = usageOf(request, turn);
  return {
    id: `chatcmpl-${call}`,
    object: 'chat.completion',
    created: 1_700_000_000,
    model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: turn.text ?? null,
          ...(toolCalls && { tool_calls: toolCalls }),
        },
        finish_reason: turn.finishReason ?? (toolCalls ? 'tool_calls' : 'stop'),
      },
    ],
    usage: {
      prompt_tokens: usage.prompt,
      completion_tokens: usage.completion,
      total_tokens: usage.prompt + usage.completion,
      prompt_tokens_details: { cached_tokens: usage.cached ?? 0 },
    },
  };
}

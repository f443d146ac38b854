import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  applyFault,
  type ScriptedTurn as CommonTurn,
  type Fault,
  listen,
  parseJson,
  readBody,
  sendJson,
  usageOf,
} from '../model-http.ts';
import { type AnthropicRequestBody, checkRequest } from './check.ts';

export type { Fault } from '../model-http.ts';

/** `thinking` comes signed before the rest, and is wanted back so. */
export type ScriptedTurn =
  | { readonly raw: unknown }
  | (Exclude<CommonTurn, { readonly raw: unknown }> & { readonly thinking?: string });

export type AnthropicScript = (
  request: AnthropicRequestBody,
  call: number,
) => ScriptedTurn | Promise<ScriptedTurn>;

export interface AnthropicServer {
  /** Scheme and authority. */
  readonly origin: string;
  readonly requests: readonly AnthropicRequestBody[];
  readonly refusals: readonly { readonly status: number; readonly message: string }[];
  /** Consumed in order, one for each request, before the script is asked. `undefined` lets one request pass. */
  readonly faults: (Fault | undefined)[];
  stop(): Promise<void>;
}

export interface AnthropicServerOptions {
  /** By model name. */
  readonly scripts: Readonly<Record<string, AnthropicScript>>;
  readonly vertex: {
    readonly isToken: (token: string) => boolean;
    readonly project: string;
    readonly location: string;
  };
}

/** How a prefix of a request is known to the cache: all that comes before and with the block at its end. */
type Prefix = string;

/**
 * The Messages API as Vertex AI serves it (`rawPredict`), answered from scripts, with a prompt cache that counts
 * what breakpoints would read and write. A stand-in for tests: there is no model behind it.
 */
export async function startAnthropic(options: AnthropicServerOptions): Promise<AnthropicServer> {
  const { scripts, vertex } = options;
  const requests: AnthropicRequestBody[] = [];
  const refusals: { status: number; message: string }[] = [];
  const faults: (Fault | undefined)[] = [];
  const signatures = new Map<string, string>();
  const cached = new Set<Prefix>();
  let calls = 0;

  const refuse = (response: ServerResponse, status: number, message: string): void => {
    refusals.push({ status, message });
    const type = ERROR_TYPES[status] ?? 'invalid_request_error';
    sendJson(response, status, { type: 'error', error: { type, message }, request_id: `req_vrtx_${calls}` });
  };

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const body = await readBody(request);
    if (await applyFault(faults.shift(), response)) return;
    const prefix = `/v1/projects/${vertex.project}/locations/${vertex.location}/publishers/anthropic/models/`;
    const [, model] = /^([^/:]+):rawPredict$/.exec(url.pathname.slice(prefix.length)) ?? [];
    if (!url.pathname.startsWith(prefix) || !model)
      return refuse(response, 404, `Not found: ${url.pathname}`);
    if (request.method !== 'POST') return refuse(response, 405, `Method ${request.method} not allowed`);
    const [, token] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
    if (!token || !vertex.isToken(token) || request.headers['x-api-key'])
      return refuse(response, 401, 'Request had invalid authentication credentials.');
    const checked = checkRequest(parseJson(body), signatures);
    if (!checked.ok) return refuse(response, 400, checked.message);
    const script = scripts[model];
    if (!script) return refuse(response, 404, `Publisher model ${model} was not found`);
    requests.push(checked.request);
    calls += 1;
    const turn = await script(checked.request, calls);
    const counted = useCache(checked.request, cached);
    sendJson(response, 200, answer(model, calls, checked.request, turn, { signatures, counted }));
  }

  return { ...(await listen(handle)), requests, refusals, faults };
}

const ERROR_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
  529: 'overloaded_error',
};

interface Counted {
  readonly read: number;
  readonly written: number;
}

/** Reads the longest known prefix that ends at a breakpoint, and keeps all that do. */
function useCache(request: AnthropicRequestBody, cached: Set<Prefix>): Counted {
  const prefixes = prefixesAtBreakpoints(request);
  const longest = (list: readonly Prefix[]) =>
    Math.max(0, ...list.map((prefix) => Math.ceil(prefix.length / 4)));
  const read = longest(prefixes.filter((prefix) => cached.has(prefix)));
  for (const prefix of prefixes) cached.add(prefix);
  return { read, written: Math.max(0, longest(prefixes) - read) };
}

function prefixesAtBreakpoints({
  tools = [],
  system = '',
  messages,
}: AnthropicRequestBody): readonly Prefix[] {
  const blocks = messages.flatMap(({ role, content }) => content.map((block) => ({ role, block })));
  let prefix = JSON.stringify([tools, system]);
  return blocks.flatMap(({ role, block }) => {
    const { cache_control: breakpoint, ...plain } = { cache_control: undefined, ...block };
    prefix += JSON.stringify([role, plain]);
    return breakpoint ? [prefix] : [];
  });
}

function answer(
  model: string,
  call: number,
  request: AnthropicRequestBody,
  turn: ScriptedTurn,
  { signatures, counted }: { signatures: Map<string, string>; counted: Counted },
): unknown {
  if ('raw' in turn) return turn.raw;
  const { thinking, text, toolCalls = [] } = turn;
  const signature = Buffer.from(`thought ${call}`).toString('base64');
  if (thinking !== undefined) signatures.set(signature, thinking);
  const usage = usageOf(request, turn);
  const read = usage.cached ?? counted.read;
  return {
    id: `msg_vrtx_${call}`,
    type: 'message',
    role: 'assistant',
    model,
    content: [
      ...(thinking === undefined ? [] : [{ type: 'thinking', thinking, signature }]),
      ...(text === undefined ? [] : [{ type: 'text', text, citations: null }]),
      ...toolCalls.map(({ name, args }, index) => ({
        type: 'tool_use',
        id: `toolu_vrtx_${call}_${index}`,
        name,
        input: args,
        caller: { type: 'direct' },
      })),
    ],
    stop_reason: turn.finishReason ?? (toolCalls.length > 0 ? 'tool_use' : 'end_turn'),
    stop_sequence: null,
    usage: {
      input_tokens: Math.max(0, usage.prompt - read - counted.written),
      cache_read_input_tokens: read,
      cache_creation_input_tokens: counted.written,
      output_tokens: usage.completion,
    },
  };
}

import { type HttpClient, HttpError } from '../../http/client.ts';
import { type Endpoint, modelError, unreadableAnswer } from './errors.ts';
import { ModelError } from './port.ts';

const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

/**
 * One attempt at one model call; resolves with the parsed answer. Throws `ModelError`, or the signal's reason.
 */
export async function postJson(
  http: HttpClient,
  endpoint: Endpoint,
  body: Uint8Array,
  options: {
    readonly headers: Readonly<Record<string, string>>;
    readonly timeoutMs: number;
    readonly signal: AbortSignal | undefined;
  },
): Promise<unknown> {
  const { headers, timeoutMs, signal } = options;
  try {
    const response = await http.request({
      method: 'POST',
      url: endpoint.url,
      headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
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

/**
 * Thoughts are signed for the model and the conversation that they were made in, so those of a resumed or moved
 * conversation may be refused: then the body is sent once more without them (`plainer`, undefined when it holds
 * none). An answer that lacks them is better than none.
 */
export async function postSigned<Body>(
  body: Body,
  send: (body: Body) => Promise<unknown>,
  plainer: (body: Body) => Body | undefined,
): Promise<unknown> {
  return postPlainer(body, send, /thinking|thought|signature/i, plainer);
}

/** Sends the body once more without what the service says it refuses. */
export async function postPlainer<Body>(
  body: Body,
  send: (body: Body) => Promise<unknown>,
  refusal: RegExp,
  plainer: (body: Body) => Body | undefined,
): Promise<unknown> {
  try {
    return await send(body);
  } catch (error) {
    const refused = error instanceof ModelError && error.status === 400 && refusal.test(error.message);
    const rest = refused ? plainer(body) : undefined;
    if (rest === undefined) throw error;
    return send(rest);
  }
}

interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** For an answer whose shape is not the one of its API. */
export function shapeError(issues: readonly Issue[], endpoint: Endpoint): ModelError {
  const [issue] = issues;
  const where = issue?.path.map(String).join('.') || 'the top level';
  return unreadableAnswer(`${where}: ${issue?.message ?? 'unknown fault'}`, endpoint);
}

import { HttpError } from '../../http/client.ts';
import { ModelError } from './port.ts';
import { askedDelayMs } from './retry-info.ts';

/** Where a model is asked, and what its provider's answers ask people to do. */
export interface Endpoint {
  readonly model: string;
  readonly url: string;
  /** What to do after this status and these words; empty when nothing is known. */
  advise(status: number | undefined, said: string): string;
  /** What to look at when what came back is no answer of this API at all. */
  readonly adviceOnGarbage: string;
}

/** A failed request as what the loop and people need: whether to try again, and what to do. */
export function modelError(error: unknown, endpoint: Endpoint): ModelError | undefined {
  if (!(error instanceof HttpError)) return undefined;
  const { status, retryable, bodyExcerpt } = error;
  const retryAfterMs = error.retryAfterMs ?? askedDelayMs(bodyExcerpt ?? '');
  const where = `Model ${endpoint.model} at ${endpoint.url}`;
  const optional = {
    ...(status !== undefined && { status }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    cause: error,
  };
  if (status === undefined) {
    const advice = retryable ? 'Check that the server runs and can be reached.' : '';
    return new ModelError(sentence(where, `gave no answer: ${error.message}.`, advice), {
      ...optional,
      retryable,
    });
  }
  const said = serverMessage(bodyExcerpt ?? '');
  const what = said ? `answered ${status}: ${said}` : `answered ${status}.`;
  // An exhausted quota comes as 429 as well, but the retries are few and bounded.
  return new ModelError(sentence(where, what, adviceOn(endpoint, status, said)), { ...optional, retryable });
}

/** An error object in a body with status 200, as some gateways send it. */
export function errorInBody(body: unknown, endpoint: Endpoint): ModelError {
  const said = messageIn(body) ?? 'an error without a message';
  const code = codeIn(body);
  const retryable = code === 429 || (code !== undefined && code >= 500);
  return new ModelError(
    sentence(
      `Model ${endpoint.model} at ${endpoint.url}`,
      `answered an error: ${said}`,
      adviceOn(endpoint, code, said),
    ),
    { retryable, ...(code !== undefined && { status: code }) },
  );
}

/** Not JSON, cut, or of another shape: most often a gateway or a broken connection, so worth another try. */
export function unreadableAnswer(fault: string, endpoint: Endpoint, cause?: unknown): ModelError {
  return new ModelError(
    sentence(
      `Model ${endpoint.model} at ${endpoint.url}`,
      `sent an answer that cannot be read: ${fault}`,
      endpoint.adviceOnGarbage,
    ),
    { retryable: true, cause },
  );
}

function adviceOn(endpoint: Endpoint, status: number | undefined, said: string): string {
  if (CONTEXT_TOO_LONG.test(said)) {
    return "The conversation is longer than the model's context: lower limits.contextTokens or choose a model with a larger context.";
  }
  const own = endpoint.advise(status, said);
  if (own !== '' || status !== 429) return own;
  return 'The rate limit or quota is used up: wait, or raise it with the provider.';
}

const CONTEXT_TOO_LONG =
  /context_length_exceeded|maximum context|context (?:length|size|window)|exceed_context_size|too many tokens|prompt is too long|input token count .*exceeds/i;

/** The server's own words: `{error: {message}}` (Google's in a list at times), `{error: "…"}`, `{message}`, `{detail}`, or the text itself. */
function serverMessage(body: string): string {
  const parsed = parseJson(body);
  const said = parsed === undefined ? (QUOTED_MESSAGE.exec(body)?.[1] ?? body) : (messageIn(parsed) ?? body);
  return oneLine(said);
}

/** For an excerpt that was cut and is no JSON any more. */
const QUOTED_MESSAGE = /"message"\s*:\s*"((?:[^"\\]|\\.)*)/;

function messageIn(body: unknown): string | undefined {
  if (typeof body === 'string') return body;
  if (Array.isArray(body)) return messageIn(body[0]);
  if (typeof body !== 'object' || body === null) return undefined;
  if ('error' in body && body.error) return withCode(messageIn(body.error), body.error);
  for (const key of ['message', 'detail'] as const) {
    const value: unknown = Object.entries(body).find(([name]) => name === key)?.[1];
    if (typeof value === 'string') return value;
    if (value !== undefined && value !== null) return JSON.stringify(value);
  }
  return undefined;
}

function withCode(message: string | undefined, error: unknown): string | undefined {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && message !== undefined && !message.includes(code)
    ? `${message} (${code})`
    : message;
}

function codeIn(body: unknown): number | undefined {
  if (typeof body !== 'object' || body === null) return undefined;
  if ('error' in body) return codeIn(body.error);
  const code = 'code' in body ? Number(body.code) : 'status' in body ? Number(body.status) : Number.NaN;
  return Number.isInteger(code) && code >= 400 && code < 600 ? code : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > 500 ? `${line.slice(0, 500).toWellFormed()}…` : line;
}

function sentence(...parts: readonly string[]): string {
  const full = parts.map((part) => part.trim()).filter((part) => part !== '');
  return full.map((part, index) => (index > 0 && !/[.…!?]$/.test(part) ? `${part}.` : part)).join(' ');
}

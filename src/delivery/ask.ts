import { type Model, ModelError, type Usage } from '../agent/models/port.ts';
import type { Answer, Ask } from './port.ts';

/** More than any answer has that fits its schema. */
const MAX_ANSWER_CHARS = 4 * 1024 * 1024;
const TRIES = 3;

export interface AskOptions {
  /** Of every answer, also of one that is refused: it was paid for. */
  readonly onUsage?: (usage: Usage) => void;
  /** Before another try; default: the provider's own wish, else one second and then four. */
  readonly pause?: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
}

/** One question, one JSON value. What the provider refuses is an answer too; only an abort is thrown. */
export function askWith(model: Model, { onUsage, pause = wait }: AskOptions = {}): Ask {
  return async ({ system, user, name, schema }, signal) => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const response = await model.generate({
          system,
          contents: [model.makeUserContent(user)],
          tools: [],
          answer: { name, schema },
          ...(signal && { signal }),
        });
        onUsage?.(response.usage);
        if (response.finishReason === 'Safety')
          return { kind: 'Unreachable', message: response.detail ?? 'the provider refused to answer' };
        if (response.finishReason === 'Length')
          return { kind: 'Malformed', message: 'the answer was cut by the limit of its length' };
        return parseAnswer(response.text);
      } catch (error) {
        signal?.throwIfAborted();
        if (!(error instanceof ModelError)) throw error;
        if (!error.retryable || attempt === TRIES) return { kind: 'Unreachable', message: error.message };
        await pause(error.retryAfterMs ?? 4 ** (attempt - 1) * 1000, signal);
      }
    }
  };
}

/** The one JSON object of an answer, without fences, thoughts and words around it. */
export function parseAnswer(text: string): Answer {
  if (text.length > MAX_ANSWER_CHARS) return malformed(`it has more than ${MAX_ANSWER_CHARS} characters`);
  const body = text.slice(text.lastIndexOf('</think>') + 1);
  const start = body.indexOf('{');
  if (start < 0) return malformed('it holds no JSON object');
  // Whole first: an object is followed by a fence or a word at the most.
  for (const end of [body.length, body.lastIndexOf('}') + 1]) {
    try {
      return { kind: 'Answered', value: JSON.parse(body.slice(start, end)) };
    } catch {
      // The shorter one is tried next.
    }
  }
  return malformed('what it holds is no JSON');
}

const malformed = (message: string): Answer => ({ kind: 'Malformed', message });

const wait = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });

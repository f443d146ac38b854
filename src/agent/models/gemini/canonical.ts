import { isDeepStrictEqual } from 'node:util';
import type { CanonicalMessage } from '../port.ts';
import { asObject, textOf } from './answer.ts';
import { callIds, callsOf } from './calls.ts';
import { contentsSchema, type GeminiContent, type GeminiPart, partsSchema } from './wire.ts';

type Assistant = Extract<CanonicalMessage, { readonly role: 'assistant' }>;
type ToolMessage = Extract<CanonicalMessage, { readonly role: 'tool' }>;

/** Where Gemini's own parts are in a canonical message's `extra`. */
const EXTRA = 'gemini';

/** Reads old sessions too, which were kept in Gemini's form. Throws with the place of what cannot be read. */
export function toCanonical(contents: readonly unknown[]): readonly CanonicalMessage[] {
  const parsed = contentsSchema.safeParse(contents);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new Error(
      `The conversation is not in Gemini's form: ${issue?.path.map(String).join('.')}: ${issue?.message}`,
    );
  }
  const history = parsed.data;
  const ids = callIds(history);
  return history.flatMap((entry, index): readonly CanonicalMessage[] => {
    if (entry.role === 'model') return [assistantOf(entry, ids[index] ?? [])];
    const before = history[index - 1];
    return userMessages(entry, ids[index - 1] ?? [], before ? callsOf(before).map(({ name }) => name) : []);
  });
}

function assistantOf(entry: GeminiContent, ids: readonly string[]): Assistant {
  const calls = callsOf(entry).map(({ name, args }, index) => ({
    id: ids[index] ?? '',
    type: 'function' as const,
    function: { name, arguments: JSON.stringify(asObject(args) ?? {}) },
  }));
  const plain: Assistant = {
    role: 'assistant',
    content: textOf(entry),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(entry.extra && { extra: entry.extra }),
  };
  // Only what the plain message does not say already: signatures, mostly.
  if (isDeepStrictEqual(plainParts(plain), entry.parts)) return plain;
  return { ...plain, extra: { ...entry.extra, [EXTRA]: { parts: entry.parts } } };
}

function userMessages(
  { parts }: GeminiContent,
  ids: readonly string[],
  names: readonly string[],
): readonly CanonicalMessage[] {
  const results = parts
    .flatMap(({ functionResponse }) => functionResponse ?? [])
    .map(({ id, name, response }, index) => ({
      role: 'tool' as const,
      tool_call_id: ids[index] ?? id ?? '',
      name: names[index] ?? name,
      content: JSON.stringify(response),
    }));
  const texts = parts.flatMap(({ text }) => text ?? []);
  return texts.length === 0 ? results : [...results, { role: 'user', content: texts.join('') }];
}

export function fromCanonical(messages: readonly CanonicalMessage[]): readonly GeminiContent[] {
  const history: GeminiContent[] = [];
  let calls: readonly string[] = [];
  let results: ToolMessage[] = [];
  const flush = () => {
    if (results.length > 0) history.push({ role: 'user', parts: inOrder(results, calls).map(responsePart) });
    results = [];
  };
  for (const message of messages) {
    if (message.role === 'tool') {
      results.push(message);
      continue;
    }
    flush();
    if (message.role === 'user') {
      if (message.content.trim() !== '') history.push({ role: 'user', parts: [{ text: message.content }] });
      continue;
    }
    calls = (message.tool_calls ?? []).map(({ id }) => id);
    const entry = modelEntry(message);
    if (entry.parts.length > 0) history.push(entry);
  }
  flush();
  return history;
}

/** Gemini pairs by position. */
function inOrder(results: readonly ToolMessage[], calls: readonly string[]): readonly ToolMessage[] {
  return results.toSorted((a, b) => calls.indexOf(a.tool_call_id) - calls.indexOf(b.tool_call_id));
}

function responsePart({ tool_call_id: id, name, content }: ToolMessage): GeminiPart {
  return { functionResponse: { id, name, response: asObject(parseJson(content)) ?? { result: content } } };
}

function modelEntry(message: Assistant): GeminiContent {
  const { [EXTRA]: own, ...foreign } = message.extra ?? {};
  const kept = partsSchema.safeParse(asObject(own)?.['parts']);
  return {
    role: 'model',
    parts: kept.success ? kept.data : plainParts(message),
    ...(Object.keys(foreign).length > 0 && { extra: foreign }),
  };
}

/** The parts that a message of any provider stands for. */
function plainParts({ content, tool_calls: calls = [] }: Assistant): readonly GeminiPart[] {
  return [
    ...(content.trim() === '' ? [] : [{ text: content }]),
    ...calls.map(({ id, function: { name, arguments: args } }) => ({
      functionCall: { id, name, args: asObject(parseJson(args)) ?? {} },
    })),
  ];
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

import { isDeepStrictEqual } from 'node:util';
import type { CanonicalMessage } from '../port.ts';
import { asObject, isToolUse, textOf } from './blocks.ts';
import { type AnthropicMessage, type Block, blocksSchema } from './wire.ts';

type Assistant = Extract<CanonicalMessage, { readonly role: 'assistant' }>;

/** Where Anthropic's own blocks are in a canonical message's `extra`. */
const EXTRA = 'anthropic';

export function toCanonical(history: readonly AnthropicMessage[]): readonly CanonicalMessage[] {
  const names = new Map<string, string>();
  return history.flatMap((entry): readonly CanonicalMessage[] => {
    for (const { id, name } of entry.content.filter(isToolUse)) names.set(id, name);
    return entry.role === 'assistant' ? [assistantOf(entry)] : userMessages(entry, names);
  });
}

function assistantOf({ content, extra }: AnthropicMessage): Assistant {
  const calls = content.filter(isToolUse).map(({ id, name, input }) => ({
    id,
    type: 'function' as const,
    function: { name, arguments: JSON.stringify(asObject(input) ?? {}) },
  }));
  const plain: Assistant = {
    role: 'assistant',
    content: textOf(content),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(extra && { extra }),
  };
  // Only what the plain message does not say already: thoughts, mostly.
  if (isDeepStrictEqual(plainBlocks(plain, sameId), content)) return plain;
  return { ...plain, extra: { ...extra, [EXTRA]: { content } } };
}

function userMessages(
  { content }: AnthropicMessage,
  names: ReadonlyMap<string, string>,
): readonly CanonicalMessage[] {
  const results = content
    .filter(({ type }) => type === 'tool_result')
    .map(({ tool_use_id: id = '', content: result }) => ({
      role: 'tool' as const,
      tool_call_id: id,
      name: names.get(id) ?? '',
      content: typeof result === 'string' ? result : '',
    }));
  const text = textOf(content);
  return text === '' ? results : [...results, { role: 'user', content: text }];
}

export function fromCanonical(messages: readonly CanonicalMessage[]): readonly AnthropicMessage[] {
  const history: AnthropicMessage[] = [];
  const idOf = idsOfTheApi();
  let results: Block[] = [];
  const flush = () => {
    if (results.length > 0) history.push({ role: 'user', content: results });
    results = [];
  };
  for (const message of messages) {
    if (message.role === 'tool') {
      results.push(resultBlock(idOf(message.tool_call_id), message.content));
      continue;
    }
    flush();
    const entry = message.role === 'user' ? userEntry(message.content) : assistantEntry(message, idOf);
    if (entry.content.length > 0) history.push(entry);
  }
  flush();
  return history;
}

/** An empty result is said by leaving its content out. */
function resultBlock(id: string, content: string): Block {
  return { type: 'tool_result', tool_use_id: id, ...(content.trim() !== '' && { content }) };
}

function userEntry(text: string): AnthropicMessage {
  return { role: 'user', content: text.trim() === '' ? [] : [{ type: 'text', text }] };
}

function assistantEntry(message: Assistant, idOf: (id: string) => string): AnthropicMessage {
  const { [EXTRA]: own, ...foreign } = message.extra ?? {};
  const kept = blocksSchema.safeParse(asObject(own)?.['content']);
  return {
    role: 'assistant',
    content: kept.success ? kept.data.map(withoutBreakpoint) : plainBlocks(message, idOf),
    ...(Object.keys(foreign).length > 0 && { extra: foreign }),
  };
}

/** A breakpoint belongs to one request: one that a saved session holds all the same counts no more. */
function withoutBreakpoint({ cache_control: _none, ...block }: Block): Block {
  return { ...block, type: block.type };
}

/** The blocks that a message of any provider stands for. */
function plainBlocks(
  { content, tool_calls: calls = [] }: Assistant,
  idOf: (id: string) => string,
): readonly Block[] {
  return [
    ...(content.trim() === '' ? [] : [{ type: 'text', text: content }]),
    ...calls.map(({ id, function: { name, arguments: args } }) => ({
      type: 'tool_use',
      id: idOf(id),
      name: name.replace(REFUSED_CHARACTERS, '_').slice(0, 128) || '_',
      input: asObject(parseJson(args)) ?? {},
    })),
  ];
}

/** In ids and names of tool calls; other services write `functions.run:0`. */
const REFUSED_CHARACTERS = /[^a-zA-Z0-9_-]/g;

/** The same id for the same id, and never one id for two. */
function idsOfTheApi(): (id: string) => string {
  const ids = new Map<string, string>();
  const taken = new Set<string>();
  return (id) => {
    const known = ids.get(id);
    if (known !== undefined) return known;
    let chosen = id.replace(REFUSED_CHARACTERS, '_') || '_';
    while (taken.has(chosen)) chosen += '_';
    ids.set(id, chosen);
    taken.add(chosen);
    return chosen;
  };
}

const sameId = (id: string): string => id;

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

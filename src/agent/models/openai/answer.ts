import type { FinishReason, ModelResponse, ToolCall, Usage } from '../port.ts';
import type { ChatMessage, ChatResponse, ChatToolCall, WireToolCall } from './wire.ts';

/** `history` is what was sent: made-up ids are unlike all ids in it. */
export function readAnswer(response: ChatResponse, history: readonly ChatMessage[]): ModelResponse {
  const choice = response.choices?.[0];
  const message = choice?.message;
  const text = textOf(message?.content);
  const toolCalls = readToolCalls(message?.tool_calls ?? [], history);
  const refusal = message?.refusal ?? undefined;
  return {
    text,
    toolCalls,
    usage: readUsage(response.usage),
    finishReason: refusal ? 'Safety' : finishReasonOf(choice?.finish_reason, toolCalls.length > 0),
    content: contentOf(text, toolCalls),
    ...(refusal && { detail: refusal }),
  };
}

/** Of a request with a form: several servers put the answer where thoughts go. */
export function readFormAnswer(response: ChatResponse, history: readonly ChatMessage[]): ModelResponse {
  const answer = readAnswer(response, history);
  const message = response.choices?.[0]?.message;
  const text = [answer.text, message?.reasoning_content, message?.reasoning].find((one) => one?.trim());
  return { ...answer, text: text ?? '' };
}

function textOf(
  content: string | readonly { readonly text?: string | null | undefined }[] | null | undefined,
): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => part.text ?? '').join('');
}

function readToolCalls(calls: readonly WireToolCall[], history: readonly ChatMessage[]): ToolCall[] {
  const taken = new Set(history.flatMap((message) => idsOf(message)));
  return calls.map((call, index) => {
    const id = call.id && !taken.has(call.id) ? call.id : freeId(taken, history.length, index);
    taken.add(id);
    return { id, name: call.function.name, ...readArguments(call.function.arguments) };
  });
}

/** From the call's place in the conversation, so that the same history gives the same ids. */
function freeId(taken: ReadonlySet<string>, turn: number, index: number): string {
  let id = `call_${turn}_${index}`;
  while (taken.has(id)) id += '_';
  return id;
}

function idsOf(message: ChatMessage): readonly string[] {
  return message.role === 'assistant' ? (message.tool_calls ?? []).map((call) => call.id) : [];
}

function readArguments(value: unknown): Pick<ToolCall, 'arguments' | 'rawArguments'> {
  if (value === undefined || value === null || value === '') return { arguments: {}, rawArguments: '{}' };
  if (typeof value !== 'string') return { arguments: asObject(value), rawArguments: JSON.stringify(value) };
  return { arguments: asObject(parseJson(value)), rawArguments: value };
}

function asObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return Object.fromEntries(Object.entries(value));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Undefined for an empty answer: strict servers refuse an assistant message without text and calls. */
function contentOf(text: string, toolCalls: readonly ToolCall[]): ChatMessage | undefined {
  if (toolCalls.length === 0) return text.trim() === '' ? undefined : { role: 'assistant', content: text };
  return { role: 'assistant', content: text === '' ? null : text, tool_calls: toolCalls.map(historyCall) };
}

/**
 * Arguments always go back as a string that holds an object: servers parse them again for their chat template.
 * What the model really wrote stands in the tool's answer when it could not be read.
 */
function historyCall(call: ToolCall): ChatToolCall {
  const args = call.arguments === undefined ? '{}' : JSON.stringify(call.arguments);
  return { id: call.id, type: 'function', function: { name: call.name, arguments: args } };
}

/** Servers do not agree on `stop` or `tool_calls` when there are calls: the calls themselves say it. */
function finishReasonOf(reason: string | null | undefined, hasCalls: boolean): FinishReason {
  switch (reason) {
    case 'length':
      return 'Length';
    case 'content_filter':
      return 'Safety';
    case 'stop':
    case 'tool_calls':
    case 'function_call':
    case 'tool':
      return hasCalls ? 'ToolCalls' : 'Stop';
    default:
      return hasCalls ? 'ToolCalls' : 'Other';
  }
}

/** `prompt_tokens` counts cached tokens already; writes to the cache are not billed apart. */
function readUsage(usage: ChatResponse['usage']): Usage {
  return {
    inputTokens: whole(usage?.prompt_tokens),
    outputTokens: whole(usage?.completion_tokens),
    cacheReadTokens: whole(usage?.prompt_tokens_details?.cached_tokens),
    cacheWriteTokens: 0,
  };
}

function whole(value: number | null | undefined): number {
  return Math.round(value ?? 0);
}

import type { FinishReason, ModelResponse, ToolCall, Usage } from '../port.ts';
import { callIds, callsOf } from './calls.ts';
import type { GeminiContent, GeminiPart, GenerateResponse } from './wire.ts';

/** `history` is what was sent: made-up ids are unlike all ids in it. */
export function readAnswer(response: GenerateResponse, history: readonly GeminiContent[]): ModelResponse {
  const candidate = response.candidates?.[0];
  const outcome = outcomeOf(response);
  const parts = (candidate?.content?.parts ?? []).flatMap((part) => readablePart(part, outcome.finish));
  const content: GeminiContent = { role: 'model', parts };
  const text = textOf(content);
  const toolCalls = readToolCalls(content, history);
  const isEmpty = text.trim() === '' && toolCalls.length === 0;
  const { finish, detail } = outcome;
  return {
    text,
    toolCalls,
    usage: readUsage(response.usageMetadata),
    finishReason: finish === 'Stop' && toolCalls.length > 0 ? 'ToolCalls' : finish,
    // An entry without text and calls is refused when it comes back.
    content: isEmpty ? undefined : content,
    ...(detail && { detail }),
  };
}

/** Text for people; thought summaries are not part of the answer. */
export function textOf({ parts }: GeminiContent): string {
  return parts.map(({ text, thought }) => (thought ? '' : (text ?? ''))).join('');
}

/** Drops what must not be executed or cannot go back: calls without a name, calls of a blocked answer. */
function readablePart(part: GeminiPart, finish: FinishReason): readonly GeminiPart[] {
  if (part.functionCall === undefined) return [part];
  return part.functionCall.name === '' || finish === 'Safety' ? [] : [part];
}

function readToolCalls(content: GeminiContent, history: readonly GeminiContent[]): readonly ToolCall[] {
  const ids = callIds([...history, content]).at(-1) ?? [];
  return callsOf(content).map(({ name, args = {} }, index) => ({
    id: ids[index] ?? '',
    name,
    arguments: asObject(args),
    rawArguments: JSON.stringify(args),
  }));
}

export function asObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return Object.fromEntries(Object.entries(value));
}

interface Outcome {
  readonly finish: FinishReason;
  readonly detail?: string | undefined;
}

function outcomeOf({ candidates, promptFeedback }: GenerateResponse): Outcome {
  const candidate = candidates?.[0];
  if (promptFeedback?.blockReason && candidate === undefined) {
    return {
      finish: 'Safety',
      detail: joined(promptFeedback.blockReason, promptFeedback.blockReasonMessage),
    };
  }
  if (!candidate) return { finish: 'Other', detail: 'the answer held no candidate' };
  const { finishReason: reason, finishMessage } = candidate;
  const finish = FINISH_REASONS[reason ?? ''] ?? 'Other';
  return finish === 'Stop' ? { finish } : { finish, detail: joined(reason, finishMessage) };
}

function joined(reason: string | null | undefined, message: string | null | undefined): string | undefined {
  return [reason, message].filter(Boolean).join(': ') || undefined;
}

/** Reasons that the API's reference lists; those about images do not come up here. */
const FINISH_REASONS: Readonly<Record<string, FinishReason>> = {
  STOP: 'Stop',
  MAX_TOKENS: 'Length',
  SAFETY: 'Safety',
  RECITATION: 'Safety',
  LANGUAGE: 'Safety',
  BLOCKLIST: 'Safety',
  PROHIBITED_CONTENT: 'Safety',
  SPII: 'Safety',
  MODEL_ARMOR: 'Safety',
  MALFORMED_FUNCTION_CALL: 'MalformedCall',
  MALFORMED_RESPONSE: 'MalformedCall',
  UNEXPECTED_TOOL_CALL: 'MalformedCall',
  TOO_MANY_TOOL_CALLS: 'MalformedCall',
};

/** `promptTokenCount` counts cached tokens already; thoughts are billed as output and counted beside it. */
function readUsage(usage: GenerateResponse['usageMetadata']): Usage {
  return {
    inputTokens: whole(usage?.promptTokenCount) + whole(usage?.toolUsePromptTokenCount),
    outputTokens: whole(usage?.candidatesTokenCount) + whole(usage?.thoughtsTokenCount),
    cacheReadTokens: whole(usage?.cachedContentTokenCount),
    cacheWriteTokens: 0,
  };
}

function whole(value: number | null | undefined): number {
  return Math.round(value ?? 0);
}

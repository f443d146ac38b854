import type { FinishReason, ModelResponse, ToolCall, Usage } from '../port.ts';
import { asObject, isBlank, isToolUse, textOf } from './blocks.ts';
import type { AnthropicMessage, Block, MessageResponse } from './wire.ts';

export function readAnswer(response: MessageResponse): ModelResponse {
  const finishReason = finishReasonOf(response.stop_reason);
  const blocks = (response.content ?? []).filter((block) => isUsable(block, finishReason));
  const text = textOf(blocks);
  const toolCalls = blocks.filter(isToolUse).map(
    ({ id, name, input = {} }): ToolCall => ({
      id,
      name,
      arguments: asObject(input),
      rawArguments: JSON.stringify(input),
    }),
  );
  const content: AnthropicMessage = { role: 'assistant', content: blocks.map(historyBlock) };
  const isEmpty = text.trim() === '' && toolCalls.length === 0;
  const detail = detailOf(response);
  return {
    text,
    toolCalls,
    usage: readUsage(response.usage),
    finishReason,
    // Thoughts alone are no turn that could go back.
    content: isEmpty ? undefined : content,
    ...(detail && { detail }),
  };
}

/** Of a request with a form: what the one tool was called with. */
export function readFormAnswer(response: MessageResponse, form: string): ModelResponse {
  const { toolCalls, finishReason, ...answer } = readAnswer(response);
  const call = toolCalls.find(({ name }) => name === form);
  const finish = finishReason === 'ToolCalls' ? 'Stop' : finishReason;
  return { ...answer, toolCalls: [], finishReason: finish, text: call?.rawArguments ?? answer.text };
}

/** Not blank text, which cannot go back, and no calls of a refused answer, which must not be executed. */
function isUsable(block: Block, finish: FinishReason): boolean {
  return !isBlank(block) && !(finish === 'Safety' && block.type === 'tool_use');
}

/** The API takes objects as input only; what the model wrote instead stands in the tool's answer. */
function historyBlock(block: Block): Block {
  return isToolUse(block) && asObject(block.input) === undefined ? { ...block, input: {} } : block;
}

function finishReasonOf(reason: string | null | undefined): FinishReason {
  switch (reason) {
    case 'end_turn':
    case 'stop_sequence':
      return 'Stop';
    case 'tool_use':
      return 'ToolCalls';
    case 'max_tokens':
    case 'model_context_window_exceeded':
    // Only long server-side tools pause; an answer that ends so is not whole.
    case 'pause_turn':
      return 'Length';
    case 'refusal':
      return 'Safety';
    default:
      return 'Other';
  }
}

function detailOf({ stop_reason: reason, stop_details: details }: MessageResponse): string | undefined {
  switch (reason) {
    case 'end_turn':
    case 'stop_sequence':
    case 'tool_use':
      return undefined;
    default:
      return [reason, details?.category, details?.explanation].filter(Boolean).join(': ') || undefined;
  }
}

/** `input_tokens` counts only what is neither read from the cache nor written to it. */
function readUsage(usage: MessageResponse['usage']): Usage {
  const cacheReadTokens = whole(usage?.cache_read_input_tokens);
  const cacheWriteTokens = whole(usage?.cache_creation_input_tokens);
  return {
    inputTokens: whole(usage?.input_tokens) + cacheReadTokens + cacheWriteTokens,
    outputTokens: whole(usage?.output_tokens),
    cacheReadTokens,
    cacheWriteTokens,
  };
}

function whole(value: number | null | undefined): number {
  return Math.round(value ?? 0);
}

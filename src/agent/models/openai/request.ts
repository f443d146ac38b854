import type { GenerateRequest } from '../port.ts';
import type { ChatMessage, ChatRequest } from './wire.ts';

/** The body of one call. Works on copies: the conversation stays as it is. */
export function chatRequest(
  model: string,
  { system, tools, ephemeral, answer }: GenerateRequest,
  history: readonly ChatMessage[],
  maxOutputTokens: number | undefined,
): ChatRequest {
  const turns =
    ephemeral === undefined ? history : [...history, { role: 'user' as const, content: ephemeral }];
  return {
    model,
    messages: [{ role: 'system', content: system }, ...mergeUserTurns(turns.flatMap(sendable))],
    // An empty list is refused by some servers; leaving it out says the same.
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters }) => ({
        type: 'function',
        function: { name, description, parameters },
      })),
    }),
    ...(maxOutputTokens !== undefined && { max_tokens: maxOutputTokens }),
    ...(answer !== undefined && {
      temperature: 0,
      response_format: { type: 'json_schema', json_schema: { ...answer, strict: true } },
    }),
  };
}

/** The same request without what some models refuse: those that think know no temperature but their own. */
export function withoutTemperature(body: ChatRequest): ChatRequest | undefined {
  const { temperature, ...rest } = body;
  return temperature === undefined ? undefined : rest;
}

/**
 * Drops what no server takes: empty assistant turns (from a resumed session, say) and our own `extra`. An entry that
 * goes out as it is stays the same one, whose JSON is kept.
 */
function sendable(message: ChatMessage): readonly ChatMessage[] {
  if (message.role !== 'assistant') return [message];
  const { content, tool_calls: calls, extra } = message;
  const isPlain = calls === undefined ? content?.trim() : calls.length > 0 && content !== '';
  if (extra === undefined && isPlain) return [message];
  if (calls && calls.length > 0) return [{ role: 'assistant', content: content || null, tool_calls: calls }];
  return content?.trim() ? [{ role: 'assistant', content }] : [];
}

/** Chat templates of several open models insist on roles that alternate. */
function mergeUserTurns(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const merged: ChatMessage[] = [];
  for (const message of messages) {
    const last = merged.at(-1);
    if (message.role === 'user' && last?.role === 'user') {
      merged[merged.length - 1] = { role: 'user', content: `${last.content}\n\n${message.content}` };
    } else {
      merged.push(message);
    }
  }
  return merged;
}

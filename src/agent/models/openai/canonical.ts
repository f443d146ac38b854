import type { CanonicalMessage } from '../port.ts';
import type { ChatMessage, ChatToolCall } from './wire.ts';

/** Our entries are nearly the canonical form already: only null content and missing names differ. */
export function toCanonical(history: readonly ChatMessage[]): readonly CanonicalMessage[] {
  const names = new Map<string, string>();
  return history.map((message): CanonicalMessage => {
    switch (message.role) {
      case 'user':
        return { role: 'user', content: message.content };
      case 'assistant': {
        for (const call of message.tool_calls ?? []) names.set(call.id, call.function.name);
        return {
          role: 'assistant',
          content: message.content ?? '',
          ...(message.tool_calls && { tool_calls: message.tool_calls }),
          ...(message.extra && { extra: message.extra }),
        };
      }
      case 'tool': {
        const { tool_call_id, content } = message;
        return { role: 'tool', tool_call_id, name: message.name ?? names.get(tool_call_id) ?? '', content };
      }
      default:
        return message satisfies never;
    }
  });
}

export function fromCanonical(messages: readonly CanonicalMessage[]): readonly ChatMessage[] {
  return messages.map((message): ChatMessage => {
    switch (message.role) {
      case 'user':
        return message;
      case 'assistant': {
        const { tool_calls: calls } = message;
        return {
          ...message,
          content: message.content === '' ? null : message.content,
          ...(calls && { tool_calls: calls.map(withPlainName) }),
        };
      }
      case 'tool':
        // The name is not part of the protocol; it comes back from the call with the same id.
        return { role: 'tool', tool_call_id: message.tool_call_id, content: message.content };
      default:
        return message satisfies never;
    }
  });
}

/** Models of other services call `default_api:run` at times, which strict servers refuse in a history. */
function withPlainName(call: ChatToolCall): ChatToolCall {
  const name = call.function.name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || '_';
  return { ...call, function: { ...call.function, name } };
}

import { z } from 'zod';
import type {
  CanonicalMessage,
  Contents,
  Model,
  ModelResponse,
  ToolCall,
} from '../../../agent/models/port.ts';
import { canonicalMessageSchema } from '../../../agent/session.ts';
import { shownBy } from '../evidence.ts';

/** What a script sees: its place in the conversation, and all that tools have answered so far, as text. */
export interface Seen {
  /** 1 for the first answer. */
  readonly turn: number;
  readonly answers: readonly { readonly tool: string; readonly text: string }[];
}

export type Move =
  | {
      readonly kind: 'Call';
      readonly calls: readonly { readonly tool: string; readonly args: Readonly<Record<string, unknown>> }[];
    }
  | { readonly kind: 'Say'; readonly text: string };

/** A model that follows a script. Its tokens are a third of the bytes that it is sent and says. */
export function scriptedModel(name: string, script: (seen: Seen) => Move): Model {
  return {
    name,
    provider: 'scripted',
    async generate({ system, contents, tools }) {
      const messages = read(contents);
      const sentBytes = Buffer.byteLength(system + JSON.stringify(tools) + JSON.stringify(contents));
      return answer(script(seenIn(messages)), messages.length, sentBytes);
    },
    makeUserContent: (content) => ({ role: 'user', content }),
    makeToolResponses: (results) =>
      results.map(({ call, result }) => ({
        role: 'tool',
        tool_call_id: call.id,
        name: call.name,
        content: JSON.stringify(result),
      })),
    toCanonical: read,
    fromCanonical: (messages) => messages,
  };
}

const read = (contents: Contents): readonly CanonicalMessage[] =>
  z.array(canonicalMessageSchema).parse(contents);

const seenIn = (messages: readonly CanonicalMessage[]): Seen => ({
  turn: messages.filter(({ role }) => role === 'assistant').length + 1,
  answers: messages.flatMap((message) =>
    message.role === 'tool' ? [{ tool: message.name, text: shownBy(message.content) }] : [],
  ),
});

function answer(move: Move, place: number, sentBytes: number): ModelResponse {
  const content = move.kind === 'Say' ? move.text : '';
  const toolCalls = move.kind === 'Call' ? move.calls.map((call, index) => toolCall(call, place, index)) : [];
  const entry: CanonicalMessage = {
    role: 'assistant',
    content,
    ...(toolCalls.length > 0 && {
      tool_calls: toolCalls.map(({ id, name, rawArguments }) => ({
        id,
        type: 'function' as const,
        function: { name, arguments: rawArguments },
      })),
    }),
  };
  const saidBytes = Buffer.byteLength(JSON.stringify(entry));
  return {
    text: content,
    toolCalls,
    usage: {
      inputTokens: Math.ceil(sentBytes / 3),
      outputTokens: Math.ceil(saidBytes / 3),
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
    },
    finishReason: toolCalls.length > 0 ? 'ToolCalls' : 'Stop',
    content: entry,
  };
}

const toolCall = (
  { tool, args }: { readonly tool: string; readonly args: Readonly<Record<string, unknown>> },
  place: number,
  index: number,
): ToolCall => ({
  id: `call-${place}-${index}`,
  name: tool,
  arguments: args,
  rawArguments: JSON.stringify(args),
});

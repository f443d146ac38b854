import type { GenerateRequest } from '../port.ts';
import { isBlank, isThinking } from './blocks.ts';
import { withBreakpoints } from './cache.ts';
import type { AnthropicMessage, MessagesBody } from './wire.ts';

/** The body of one call. Works on copies: the conversation stays as it is. */
export function messagesBody(
  { system, tools, ephemeral, answer }: GenerateRequest,
  history: readonly AnthropicMessage[],
  options: { readonly maxOutputTokens: number; readonly breakpoints: readonly number[] },
): MessagesBody {
  const marked = withBreakpoints(history, options.breakpoints);
  const turns: readonly AnthropicMessage[] =
    ephemeral === undefined
      ? marked
      : [...marked, { role: 'user', content: [{ type: 'text', text: ephemeral }] }];
  return {
    anthropic_version: 'vertex-2023-10-16',
    max_tokens: options.maxOutputTokens,
    system,
    messages: mergeTurns(turns.map(sendable)),
    // Left out on the last turn: a history with tool calls is taken without definitions.
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters }) => ({
        name,
        description,
        input_schema: { ...parameters, type: 'object' },
      })),
    }),
    // The form is a tool that has to be called. No temperature: newer models refuse it.
    ...(answer !== undefined && {
      tools: [
        {
          name: answer.name,
          description: 'Takes the answer.',
          input_schema: { ...answer.schema, type: 'object' },
        },
      ],
      tool_choice: { type: 'tool', name: answer.name },
    }),
  };
}

/** The same request without thoughts, for a service that does not accept their signatures any more. */
export function withoutThinking(body: MessagesBody): MessagesBody | undefined {
  if (!body.messages.some(({ content }) => content.some(isThinking))) return undefined;
  const messages = body.messages.map(({ role, content }) => ({
    role,
    content: content.filter((block) => !isThinking(block)),
  }));
  return { ...body, messages: mergeTurns(messages) };
}

type Turn = Pick<AnthropicMessage, 'role' | 'content'>;

/** An entry that goes out as it is stays the same one, whose JSON is kept. */
function sendable(entry: AnthropicMessage): Turn {
  const { role, content } = entry;
  if (entry.extra === undefined && !content.some(isBlank)) return entry;
  return { role, content: content.filter((block) => !isBlank(block)) };
}

/** Roles must alternate; a turn that is empty after all is left out. */
function mergeTurns(turns: readonly Turn[]): readonly Turn[] {
  const merged: Turn[] = [];
  for (const turn of turns) {
    const last = merged.at(-1);
    if (turn.content.length === 0) continue;
    if (last?.role === turn.role) {
      merged[merged.length - 1] = { role: turn.role, content: [...last.content, ...turn.content] };
    } else {
      merged.push(turn);
    }
  }
  return merged;
}

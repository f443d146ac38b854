import type { ChatRequestBody } from './check.ts';
import { parseObject } from './demo-facts.ts';
import type { ScriptedTurn } from './server.ts';

/** What a script that keeps nothing between calls reads out of the conversation so far. */
export interface Conversation {
  readonly event: Readonly<Record<string, unknown>>;
  /** A user turn after an answer of ours. */
  readonly reply: string | undefined;
  /** Of the first call of this tool. */
  result(tool: string): Readonly<Record<string, unknown>> | undefined;
  /** Of every call of this tool. */
  results(tool: string): readonly Readonly<Record<string, unknown>>[];
  /** Of the last command that mentions this text. */
  exec(text: string): Readonly<Record<string, unknown>> | undefined;
  errors(): readonly string[];
}

export function readConversation({ messages }: ChatRequestBody): Conversation {
  const made: { name: string; args: string; result: Record<string, unknown> }[] = [];
  const open = new Map<string, { name: string; arguments: string }>();
  let event: Record<string, unknown> | undefined;
  let answered = false;
  let reply: string | undefined;
  for (const message of messages) {
    if (message.role === 'user') {
      event ??= parseObject(message.content) ?? parseObject(message.content.split('\n\n')[0] ?? '');
      if (answered) reply = message.content;
    } else if (message.role === 'assistant') {
      answered = !message.tool_calls;
      for (const call of message.tool_calls ?? []) open.set(call.id, call.function);
    } else if (message.role === 'tool') {
      const call = open.get(message.tool_call_id);
      const result = parseObject(message.content) ?? {};
      if (call) made.push({ name: call.name, args: call.arguments, result });
    }
  }
  return {
    event: event ?? {},
    reply,
    result: (tool) => made.find(({ name }) => name === tool)?.result,
    results: (tool) => made.filter(({ name }) => name === tool).map(({ result }) => result),
    exec: (text) => made.findLast(({ name, args }) => name === 'sandbox_exec' && args.includes(text))?.result,
    errors: () =>
      made.flatMap(({ name, result }) =>
        typeof result['error'] === 'string' ? [`\`${name}\`: ${result['error']}`] : [],
      ),
  };
}

/** The answer itself, or what the preview of a spilled one shows. */
export function diffOf(seen: Conversation): unknown {
  const answer = seen.result('gitlab_get_mr_diff');
  const text = answer?.['output'] ?? answer?.['preview'];
  if (typeof text !== 'string') return answer;
  const whole = parseObject(text) ?? parseArray(text);
  if (whole) return whole;
  return [...text.matchAll(/"new_path":\s*"([^"]+)"[\s\S]*?"diff":\s*("(?:[^"\\]|\\.)*")/g)].map(
    ([, file, diff]) => ({
      new_path: file,
      diff: JSON.parse(diff ?? '""'),
    }),
  );
}

function parseArray(text: string): unknown {
  return parseObject(`{"list":${text}}`)?.['list'];
}

/** Arguments by the names that the tool's own schema gives them. */
export function ask(request: ChatRequestBody, name: string, facts: Readonly<Record<string, unknown>>) {
  const schema = request.tools?.find((tool) => tool.function.name === name)?.function.parameters;
  const properties = parseObject(JSON.stringify(schema?.['properties'] ?? {})) ?? {};
  const args = Object.fromEntries(
    Object.keys(properties).flatMap((key) => (key in facts ? [[key, facts[key]]] : [])),
  );
  return { name, args };
}

export function calls(toolCalls: readonly { name: string; args: Record<string, unknown> }[]): ScriptedTurn {
  return { toolCalls };
}

export function exec(command: string): ScriptedTurn {
  return calls([{ name: 'sandbox_exec', args: { command } }]);
}

export function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

export function fence(text: string, language: string): string {
  return `\`\`\`${language}\n${text}\n\`\`\``;
}

import { z } from 'zod';

const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,128}$/);
const toolId = z.string().regex(/^[a-zA-Z0-9_-]+$/);
const cacheControl = z.strictObject({ type: z.literal('ephemeral') }).optional();
const text = z.string().refine((value) => value.trim() !== '', 'text content blocks must be non-empty');

/** `citations` and `caller` are in answers and taken back. */
const textBlock = z.strictObject({
  type: z.literal('text'),
  text,
  citations: z.null().optional(),
  cache_control: cacheControl,
});

const block = z.discriminatedUnion('type', [
  textBlock,
  z.strictObject({
    type: z.literal('tool_use'),
    id: toolId,
    name: toolName,
    input: z.record(z.string(), z.unknown()),
    caller: z.strictObject({ type: z.literal('direct') }).optional(),
    cache_control: cacheControl,
  }),
  z.strictObject({
    type: z.literal('tool_result'),
    tool_use_id: toolId,
    content: z.union([text, z.array(textBlock).min(1)]).optional(),
    is_error: z.boolean().optional(),
    cache_control: cacheControl,
  }),
  // No breakpoint on thoughts.
  z.strictObject({ type: z.literal('thinking'), thinking: z.string(), signature: z.string().min(1) }),
  z.strictObject({ type: z.literal('redacted_thinking'), data: z.string().min(1) }),
]);

const requestSchema = z.strictObject({
  anthropic_version: z.literal('vertex-2023-10-16'),
  max_tokens: z.int().positive(),
  system: z.union([text, z.array(textBlock)]).optional(),
  messages: z
    .array(z.strictObject({ role: z.enum(['user', 'assistant']), content: z.array(block).min(1) }))
    .min(1),
  tools: z
    .array(
      z.strictObject({
        name: toolName,
        description: z.string(),
        input_schema: z.looseObject({ type: z.literal('object') }),
        cache_control: cacheControl,
      }),
    )
    .min(1)
    .optional(),
  tool_choice: z.strictObject({ type: z.literal('tool'), name: toolName }).optional(),
});

export type AnthropicRequestBody = z.output<typeof requestSchema>;
export type AnthropicRequestMessage = AnthropicRequestBody['messages'][number];
export type AnthropicRequestBlock = z.output<typeof block>;

export type Checked =
  | { readonly ok: true; readonly request: AnthropicRequestBody }
  | { readonly ok: false; readonly message: string };

/** Refuses what the real API refuses, and what it only takes by leniency. `signatures`: given out, with the thought that each signs. */
export function checkRequest(body: unknown, signatures: ReadonlyMap<string, string>): Checked {
  const parsed = requestSchema.safeParse(body);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return { ok: false, message: `${issue?.path.map(String).join('.')}: ${issue?.message}` };
  }
  const fault = faultInConversation(parsed.data, signatures);
  return fault ? { ok: false, message: fault } : { ok: true, request: parsed.data };
}

/** Breakpoints of a request, wherever they stand: tools, system and messages count together. */
export function countBreakpoints(request: AnthropicRequestBody): number {
  return (JSON.stringify(request).match(/"cache_control":/g) ?? []).length;
}

const MAX_BREAKPOINTS = 4;

function faultInConversation(
  request: AnthropicRequestBody,
  signatures: ReadonlyMap<string, string>,
): string | undefined {
  const { messages, tools = [], tool_choice: choice } = request;
  if (choice !== undefined && !tools.some(({ name }) => name === choice.name))
    return `tool_choice: Tool '${choice.name}' not found in provided tools`;
  const breakpoints = countBreakpoints(request);
  if (breakpoints > MAX_BREAKPOINTS)
    return `A maximum of ${MAX_BREAKPOINTS} blocks with cache_control may be provided. Found ${breakpoints}.`;
  if (new Set(tools.map(({ name }) => name)).size < tools.length) return 'tools: Tool names must be unique.';
  const ids = new Set<string>();
  for (const [index, message] of messages.entries()) {
    const before = messages[index - 1];
    const fault =
      faultInRoles(message, before) ??
      faultInPairing(message, before, ids) ??
      faultInThoughts(message, signatures);
    if (fault) return `messages.${index}: ${fault}`;
  }
  const last = messages.at(-1);
  if (last?.role === 'assistant') return 'the conversation must end with a user message';
  return undefined;
}

function faultInRoles(
  { role }: AnthropicRequestMessage,
  before: AnthropicRequestMessage | undefined,
): string | undefined {
  if (before === undefined) return role === 'user' ? undefined : 'first message must use the "user" role';
  return role === before.role ? 'roles must alternate between "user" and "assistant"' : undefined;
}

function faultInPairing(
  { role, content }: AnthropicRequestMessage,
  before: AnthropicRequestMessage | undefined,
  ids: Set<string>,
): string | undefined {
  const open = (before?.content ?? []).flatMap((item) => (item.type === 'tool_use' ? item.id : []));
  const results = content.flatMap((item) => (item.type === 'tool_result' ? item.tool_use_id : []));
  if (content.slice(0, results.length).some(({ type }) => type !== 'tool_result'))
    return 'tool_result blocks must come first in their message';
  if (new Set(results).size < results.length) return 'each tool_use must have a single result';
  const unexpected = results.find((id) => !open.includes(id));
  if (unexpected !== undefined)
    return `unexpected tool_use_id found in tool_result blocks: ${unexpected}; it must have a tool_use block in the previous message`;
  const missing = open.filter((id) => !results.includes(id));
  if (missing.length > 0)
    return `tool_use ids were found without tool_result blocks immediately after: ${missing.join(', ')}`;
  for (const item of content) {
    if (item.type !== 'tool_use') continue;
    if (role === 'user') return 'tool_use blocks can only be in assistant messages';
    if (ids.has(item.id)) return '`tool_use` ids must be unique';
    ids.add(item.id);
  }
  return role === 'assistant' && results.length > 0
    ? 'tool_result blocks can only be in user messages'
    : undefined;
}

function faultInThoughts(
  { content }: AnthropicRequestMessage,
  signatures: ReadonlyMap<string, string>,
): string | undefined {
  const wrong = content.some(
    (item) => item.type === 'thinking' && signatures.get(item.signature) !== item.thinking,
  );
  return wrong ? 'Invalid `signature` in `thinking` block' : undefined;
}

import { z } from 'zod';

const toolCall = z.strictObject({
  id: z.string().min(1),
  type: z.literal('function'),
  function: z.strictObject({ name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/), arguments: z.string() }),
});

const message = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('system'), content: z.string().min(1) }),
  z.strictObject({ role: z.literal('user'), content: z.string().min(1) }),
  z.strictObject({
    role: z.literal('assistant'),
    content: z.string().nullable(),
    tool_calls: z.array(toolCall).min(1).optional(),
  }),
  z.strictObject({ role: z.literal('tool'), tool_call_id: z.string().min(1), content: z.string() }),
]);

const requestSchema = z.strictObject({
  model: z.string().min(1),
  messages: z.array(message).min(1),
  tools: z
    .array(
      z.strictObject({
        type: z.literal('function'),
        function: z.strictObject({
          name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/),
          description: z.string(),
          parameters: z.looseObject({ type: z.literal('object') }),
        }),
      }),
    )
    .min(1)
    .optional(),
  max_tokens: z.int().positive().optional(),
  temperature: z.number().min(0).max(2).optional(),
  response_format: z
    .strictObject({
      type: z.literal('json_schema'),
      json_schema: z.strictObject({
        name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/),
        strict: z.literal(true),
        schema: z.looseObject({ type: z.literal('object') }).refine(isStrict, {
          message:
            "Invalid schema for response_format: 'additionalProperties' has to be false and 'required' to name every property",
        }),
      }),
    })
    .optional(),
});

/** As the strict mode of the real API wants every object of a schema. */
function isStrict(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.every(isStrict);
  if (typeof schema !== 'object' || schema === null) return true;
  const { properties, additionalProperties, required } = z
    .looseObject({
      properties: z.record(z.string(), z.unknown()).optional(),
      additionalProperties: z.unknown().optional(),
      required: z.array(z.string()).optional(),
    })
    .parse(schema);
  const closed =
    properties === undefined ||
    (additionalProperties === false && Object.keys(properties).every((key) => required?.includes(key)));
  return closed && Object.values(schema).every(isStrict);
}

export type ChatRequestBody = z.output<typeof requestSchema>;
export type RequestMessage = z.output<typeof message>;

export type Checked =
  | { readonly ok: true; readonly request: ChatRequestBody }
  | { readonly ok: false; readonly message: string };

/** Refuses all that some real server refuses: unknown fields, open tool calls, empty turns, roles out of turn. */
export function checkRequest(body: unknown): Checked {
  const parsed = requestSchema.safeParse(body);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return {
      ok: false,
      message: `Invalid value at '${issue?.path.map(String).join('.')}': ${issue?.message}`,
    };
  }
  const fault = faultInConversation(parsed.data);
  return fault ? { ok: false, message: fault } : { ok: true, request: parsed.data };
}

function faultInConversation({ messages, tools }: ChatRequestBody): string | undefined {
  const ids = new Set<string>();
  let open: string[] = [];
  let previous: RequestMessage | undefined;
  for (const [index, current] of messages.entries()) {
    const at = `messages[${index}]`;
    if (current.role === 'tool') {
      const position = open.indexOf(current.tool_call_id);
      if (position < 0) return `${at}: no preceding tool call has the id '${current.tool_call_id}'`;
      open.splice(position, 1);
    } else if (open.length > 0) {
      return `${at}: tool calls without a result before it: ${open.join(', ')}`;
    }
    switch (current.role) {
      case 'system':
        if (index > 0) return `${at}: a system message must come first`;
        break;
      case 'user':
        if (previous?.role === 'user') return `${at}: conversation roles must alternate`;
        break;
      case 'assistant': {
        if (previous === undefined || previous.role === 'system' || previous.role === 'assistant') {
          return `${at}: conversation roles must alternate`;
        }
        if (!current.tool_calls && !current.content?.trim()) {
          return `${at}: an assistant message needs content or tool calls`;
        }
        for (const call of current.tool_calls ?? []) {
          if (ids.has(call.id)) return `${at}: duplicate tool call id '${call.id}'`;
          ids.add(call.id);
          if (!holdsObject(call.function.arguments))
            return `${at}: arguments of '${call.id}' are not a JSON object`;
        }
        open = (current.tool_calls ?? []).map((call) => call.id);
        break;
      }
    }
    previous = current;
  }
  if (open.length > 0) return `the last message leaves tool calls open: ${open.join(', ')}`;
  if (previous?.role === 'assistant') return 'the last message must not be from the assistant';
  const names = (tools ?? []).map((tool) => tool.function.name);
  return new Set(names).size < names.length ? 'two tools have the same name' : undefined;
}

function holdsObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

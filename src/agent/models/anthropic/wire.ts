import { z } from 'zod';

/**
 * Entries of a conversation as the Messages API takes them, kept as they came: thinking blocks are signed and go
 * back unchanged.
 */
export interface AnthropicMessage {
  readonly role: 'user' | 'assistant';
  readonly content: readonly Block[];
  /** Another provider's data from a resumed session: kept, never sent. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** `text`, `tool_use`, `tool_result`, `thinking`, `redacted_thinking`, and what the API may add. */
export interface Block {
  readonly type: string;
  readonly text?: string;
  /** Of `tool_use`. */
  readonly id?: string;
  readonly name?: string;
  readonly input?: unknown;
  /** Of `tool_result`. */
  readonly tool_use_id?: string;
  readonly content?: unknown;
  readonly [field: string]: unknown;
}

export interface ToolUse extends Block {
  readonly type: 'tool_use';
  readonly id: string;
  readonly name: string;
}

const blockSchema = z.looseObject({
  type: z.string(),
  text: z.string().exactOptional(),
  id: z.string().exactOptional(),
  name: z.string().exactOptional(),
  input: z.unknown().exactOptional(),
  tool_use_id: z.string().exactOptional(),
  content: z.unknown().exactOptional(),
});

export const blocksSchema = z.array(blockSchema);

const tokenCount = z.number().nonnegative().nullish();

export const messageResponseSchema = z.object({
  content: blocksSchema.nullish(),
  stop_reason: z.string().nullish(),
  stop_details: z.object({ category: z.string().nullish(), explanation: z.string().nullish() }).nullish(),
  usage: z
    .object({
      input_tokens: tokenCount,
      output_tokens: tokenCount,
      cache_creation_input_tokens: tokenCount,
      cache_read_input_tokens: tokenCount,
    })
    .nullish(),
  error: z.unknown().optional(),
});

export type MessageResponse = z.output<typeof messageResponseSchema>;

export interface MessagesBody {
  /** In the body on Vertex, where other services have a header; the model is named by the address. */
  readonly anthropic_version: 'vertex-2023-10-16';
  readonly max_tokens: number;
  readonly system: string;
  readonly messages: readonly Pick<AnthropicMessage, 'role' | 'content'>[];
  readonly tools?: readonly {
    readonly name: string;
    readonly description: string;
    readonly input_schema: Readonly<Record<string, unknown>>;
  }[];
  readonly tool_choice?: { readonly type: 'tool'; readonly name: string };
}

import { z } from 'zod';

/** Entries of a conversation as chat completions takes them, and as we keep them. */
export type ChatMessage =
  | { readonly role: 'user'; readonly content: string }
  | {
      readonly role: 'assistant';
      readonly content: string | null;
      readonly tool_calls?: readonly ChatToolCall[];
      /** Another provider's data from a resumed session: kept, never sent. */
      readonly extra?: Readonly<Record<string, unknown>>;
    }
  | {
      readonly role: 'tool';
      readonly tool_call_id: string;
      readonly name?: string;
      readonly content: string;
    };

export interface ChatToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly (ChatMessage | { readonly role: 'system'; readonly content: string })[];
  readonly tools?: readonly {
    readonly type: 'function';
    readonly function: {
      readonly name: string;
      readonly description: string;
      readonly parameters: Readonly<Record<string, unknown>>;
    };
  }[];
  readonly max_tokens?: number;
  readonly temperature?: 0;
  readonly reasoning_effort?: string;
  readonly response_format?: {
    readonly type: 'json_schema';
    readonly json_schema: {
      readonly name: string;
      readonly strict: true;
      readonly schema: Readonly<Record<string, unknown>>;
    };
  };
}

const toolCallSchema = z.object({
  id: z.string().nullish(),
  function: z.object({
    name: z.string(),
    /** A string by the protocol; an object from several local servers; nothing for a call without arguments. */
    arguments: z.unknown().optional(),
  }),
});

const tokenCount = z.number().nonnegative().nullish();

/**
 * Wide on purpose: what servers leave out or answer null for differs, and unknown fields are ignored. Only what
 * is used is looked at.
 */
export const chatResponseSchema = z.object({
  choices: z
    .array(
      z.object({
        finish_reason: z.string().nullish(),
        message: z
          .object({
            content: z.union([z.string(), z.array(z.object({ text: z.string().nullish() }))]).nullish(),
            refusal: z.string().nullish(),
            /** Where servers put what the model thought, and some of them the whole of an answer in a form. */
            reasoning_content: z.string().nullish(),
            reasoning: z.string().nullish(),
            tool_calls: z.array(toolCallSchema).nullish(),
          })
          .nullish(),
      }),
    )
    .nullish(),
  usage: z
    .object({
      prompt_tokens: tokenCount,
      completion_tokens: tokenCount,
      prompt_tokens_details: z.object({ cached_tokens: tokenCount }).nullish(),
    })
    .nullish(),
  error: z.unknown().optional(),
});

export type ChatResponse = z.output<typeof chatResponseSchema>;
export type WireToolCall = z.output<typeof toolCallSchema>;

/**
 * Conversation entries of one provider. Opaque outside the adapter that made them: the loop only appends and
 * removes whole entries. JSON-serialisable, so that a checkpoint can hold them.
 */
export type Contents = readonly unknown[];

export interface ToolDefinition {
  readonly name: string;
  readonly description: string;
  /** JSON Schema (draft 2020-12) of an object. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Domain knowledge for the system prompt; not part of the schema. Markdown. */
  readonly notes?: string;
}

export interface ToolCall {
  /** Unique in the conversation; the adapter makes one up where the provider has none. */
  readonly id: string;
  readonly name: string;
  /** Parsed arguments; `undefined` when they were not a JSON object, then `rawArguments` has the text. */
  readonly arguments: Readonly<Record<string, unknown>> | undefined;
  readonly rawArguments: string;
}

export interface ToolResult {
  readonly call: ToolCall;
  /** A JSON object. */
  readonly result: Readonly<Record<string, unknown>>;
}

/** Tokens of one call. `inputTokens` counts everything that was sent, cached tokens included. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
}

export type FinishReason = 'Stop' | 'ToolCalls' | 'Length' | 'Safety' | 'MalformedCall' | 'Other';

export interface ModelResponse {
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  readonly usage: Usage;
  readonly finishReason: FinishReason;
  /** The provider's entry to append to the contents; undefined when the answer was empty. */
  readonly content: unknown;
  /** Provider's own word where it says more than finishReason (block reason, refusal). */
  readonly detail?: string;
}

export interface GenerateRequest {
  readonly system: string;
  readonly contents: Contents;
  /** Empty on the hard turn: the model must answer in text. */
  readonly tools: readonly ToolDefinition[];
  /** Sent after the contents as a user turn and forgotten: never stored, never a cache breakpoint. */
  readonly ephemeral?: string;
  /**
   * The text of the answer is one JSON value of this schema, and nothing is left to chance that the provider lets
   * be. For a single question without tools.
   */
  readonly answer?: AnswerForm;
  readonly signal?: AbortSignal;
}

export interface AnswerForm {
  /** Letters, digits and `_`, for providers that want a name. */
  readonly name: string;
  /** JSON Schema of an object whose properties are all required, and no others allowed. */
  readonly schema: Readonly<Record<string, unknown>>;
}

/** Canonical, OpenAI-style message of a saved session. */
export type CanonicalMessage =
  | { readonly role: 'user'; readonly content: string }
  | {
      readonly role: 'assistant';
      readonly content: string;
      readonly tool_calls?: readonly {
        readonly id: string;
        readonly type: 'function';
        readonly function: { readonly name: string; readonly arguments: string };
      }[];
      /** Provider-only data (thought signatures), used again only by the provider named inside. */
      readonly extra?: Readonly<Record<string, unknown>>;
    }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly name: string; readonly content: string };

export interface Model {
  /** As people named it, e.g. `demo-script`. */
  readonly name: string;
  /** `gen_ai.system` of OpenTelemetry: `openai`, `gcp.gemini`, `anthropic`. */
  readonly provider: string;
  /** Throws `ModelError`. Retries are the caller's. */
  generate(request: GenerateRequest): Promise<ModelResponse>;
  makeUserContent(text: string): unknown;
  /** One or more entries that answer the calls of the entry before, in its order. */
  makeToolResponses(results: readonly ToolResult[]): readonly unknown[];
  toCanonical(contents: Contents): readonly CanonicalMessage[];
  fromCanonical(messages: readonly CanonicalMessage[]): Contents;
}

export class ModelError extends Error {
  override readonly name = 'ModelError';
  readonly retryable: boolean;
  /** HTTP status where there was one. */
  readonly status: number | undefined;
  /** The provider's own wish (Retry-After, RetryInfo), in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    options: { retryable: boolean; status?: number; retryAfterMs?: number; cause?: unknown },
  ) {
    super(message, { cause: options.cause });
    this.retryable = options.retryable;
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
  }
}

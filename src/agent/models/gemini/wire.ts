import { z } from 'zod';

/**
 * Entries of a conversation in Gemini's own form, kept as they came: parts may carry fields that only the API
 * understands (thought signatures, and whatever comes next), and they go back unchanged.
 */
export interface GeminiContent {
  readonly role: 'user' | 'model';
  readonly parts: readonly GeminiPart[];
  /** Another provider's data from a resumed session: kept, never sent. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

export interface GeminiPart {
  readonly text?: string;
  /** A summary of the model's thoughts: not part of its answer. */
  readonly thought?: boolean;
  readonly thoughtSignature?: string;
  readonly functionCall?: FunctionCall;
  readonly functionResponse?: FunctionResponse;
  readonly [field: string]: unknown;
}

export interface FunctionCall {
  /** Gemini 3 gives one on the Developer API, older models and Vertex none. */
  readonly id?: string;
  readonly name: string;
  readonly args?: unknown;
}

export interface FunctionResponse {
  readonly id?: string;
  readonly name: string;
  readonly response: Readonly<Record<string, unknown>>;
}

const jsonObject = z.record(z.string(), z.unknown());

const partSchema = z.looseObject({
  text: z.string().exactOptional(),
  thought: z.boolean().exactOptional(),
  thoughtSignature: z.string().exactOptional(),
  functionCall: z
    .looseObject({ id: z.string().exactOptional(), name: z.string(), args: z.unknown().exactOptional() })
    .exactOptional(),
  functionResponse: z
    .looseObject({ id: z.string().exactOptional(), name: z.string(), response: jsonObject })
    .exactOptional(),
});

export const partsSchema = z.array(partSchema);

/** Of a kept conversation. Old sessions have the roles `function` and `tool` for what is `user` today. */
export const contentsSchema = z.array(
  z.object({
    role: z
      .enum(['user', 'model', 'function', 'tool'])
      .default('user')
      .transform((role): GeminiContent['role'] => (role === 'model' ? 'model' : 'user')),
    parts: partsSchema.default([]),
    extra: jsonObject.exactOptional(),
  }),
);

const tokenCount = z.number().nonnegative().nullish();

/** Wide on purpose: an answer without candidates, content or parts is an empty one, not an unreadable one. */
export const generateResponseSchema = z.object({
  candidates: z
    .array(
      z.object({
        content: z.object({ parts: partsSchema.nullish() }).nullish(),
        finishReason: z.string().nullish(),
        finishMessage: z.string().nullish(),
      }),
    )
    .nullish(),
  promptFeedback: z
    .object({ blockReason: z.string().nullish(), blockReasonMessage: z.string().nullish() })
    .nullish(),
  usageMetadata: z
    .object({
      promptTokenCount: tokenCount,
      toolUsePromptTokenCount: tokenCount,
      cachedContentTokenCount: tokenCount,
      candidatesTokenCount: tokenCount,
      thoughtsTokenCount: tokenCount,
    })
    .nullish(),
  error: z.unknown().optional(),
});

export type GenerateResponse = z.output<typeof generateResponseSchema>;

export interface GenerateBody {
  readonly systemInstruction: { readonly parts: readonly [{ readonly text: string }] };
  readonly contents: readonly Pick<GeminiContent, 'role' | 'parts'>[];
  readonly tools?: readonly [{ readonly functionDeclarations: readonly FunctionDeclaration[] }];
  readonly generationConfig?: {
    readonly maxOutputTokens?: number;
    readonly temperature?: 0;
    readonly responseMimeType?: 'application/json';
    readonly responseJsonSchema?: Readonly<Record<string, unknown>>;
  };
}

export interface FunctionDeclaration {
  readonly name: string;
  readonly description: string;
  readonly parametersJsonSchema?: Readonly<Record<string, unknown>>;
}

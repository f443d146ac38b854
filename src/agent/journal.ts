import { createHash } from 'node:crypto';
import { z } from 'zod';
import {
  type Checkpoint,
  checkpointSchema,
  count,
  endKindSchema,
  jsonObject,
  stopRuleSchema,
  toolCallSchema,
  usageSchema,
} from './checkpoint.ts';
import type { LoopResult } from './loop-ending.ts';
import type { LoopOptions } from './loop-run.ts';
import type { GenerateRequest, ModelResponse, ToolCall, ToolDefinition } from './models/port.ts';
import { type Redact, redactJson } from './redaction.ts';
import type { ToolExecution } from './tools/registry.ts';
import { transcriptEntrySchema } from './transcript.ts';

/**
 * Everything that the world answered to one loop, in order and JSON-serialisable: with it the loop can be run again
 * without a model, a sandbox or a network, and must come to the same end. Holds no secrets that `redact` knows.
 */
export type JournalEntry =
  | ({ readonly kind: 'Begin'; readonly version: 1 } & JournalBeginning)
  | { readonly kind: 'Answer'; readonly request: string; readonly answer: ModelResponse }
  | ({ readonly kind: 'Failure'; readonly request: string } & JournalFailure)
  | {
      readonly kind: 'Tool';
      readonly call: ToolCall;
      readonly execution: ToolExecution;
      /** The last file number given out, after the call. */
      readonly spillCounter: number;
      /** The tools that were left, where the call changed them: a lost sandbox takes its tools along. */
      readonly definitions?: readonly ToolDefinition[];
    }
  /** `refused` with the reason when it was not stored. */
  | { readonly kind: 'Checkpoint'; readonly state: Checkpoint; readonly refused?: string }
  /** The loop was stopped from outside, with a reason of this name. */
  | { readonly kind: 'Aborted'; readonly name: string; readonly message: string }
  | { readonly kind: 'End'; readonly result: LoopResult };

export interface JournalBeginning
  extends Pick<LoopOptions, 'system' | 'contents' | 'limits' | 'prices' | 'retry' | 'notice' | 'resume'> {
  readonly provider: string;
  readonly model: string;
  readonly definitions: readonly ToolDefinition[];
  /** Names of the tools whose calls may run beside others. */
  readonly concurrent: readonly string[];
  readonly spillCounter: number;
}

export interface JournalFailure {
  readonly message: string;
  /** Absent when it was not a `ModelError`. */
  readonly model?: { readonly retryable: boolean; readonly status?: number; readonly retryAfterMs?: number };
}

/** What a request is found by: two requests with the same digest were the same to the model. */
export function requestDigest(request: GenerateRequest, redact: Redact): string {
  const { system, contents, tools, ephemeral } = request;
  const seen = redactJson({ system, contents, tools: tools.map(({ name }) => name), ephemeral }, redact);
  return createHash('sha256').update(JSON.stringify(seen)).digest('hex');
}

/** Reads one line of a journal. Throws with the place of the first fault. */
export function parseJournalEntry(line: string): JournalEntry {
  const parsed = journalEntrySchema.safeParse(JSON.parse(line));
  if (parsed.success) return parsed.data;
  throw new Error(`The journal cannot be read: ${z.prettifyError(parsed.error)}. Record it anew.`);
}

const definitionSchema = z.strictObject({
  name: z.string(),
  description: z.string(),
  parameters: jsonObject,
  notes: z.string().exactOptional(),
});

const ratesShape = {
  input: z.number(),
  output: z.number(),
  cacheRead: z.number(),
  cacheWrite: z.number(),
};

const priceSchema = z.strictObject({
  ...ratesShape,
  prefix: z.string(),
  longContext: z.strictObject({ ...ratesShape, overInputTokens: count }).exactOptional(),
  since: z.string().exactOptional(),
  until: z.string().exactOptional(),
  regionalFactor: z.number().exactOptional(),
});

const answerSchema = z
  .strictObject({
    text: z.string(),
    toolCalls: z.array(toolCallSchema),
    usage: usageSchema,
    finishReason: z.enum(['Stop', 'ToolCalls', 'Length', 'Safety', 'MalformedCall', 'Other']),
    content: z.unknown().optional(),
    detail: z.string().exactOptional(),
  })
  .transform((answer) => ({ ...answer, content: answer.content }));

const journalEntrySchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('Begin'),
    version: z.literal(1),
    provider: z.string(),
    model: z.string(),
    system: z.string(),
    contents: z.array(z.unknown()),
    limits: z.strictObject({
      maxIterations: count,
      contextTokens: count,
      budgetUsd: z.number().exactOptional(),
    }),
    prices: z.array(priceSchema).exactOptional(),
    retry: z.strictObject({ count, baseDelayMs: z.number(), maxDelayMs: z.number() }).exactOptional(),
    notice: z.string().exactOptional(),
    resume: z.unknown().optional(),
    definitions: z.array(definitionSchema),
    concurrent: z.array(z.string()),
    spillCounter: count,
  }),
  z.strictObject({ kind: z.literal('Answer'), request: z.string(), answer: answerSchema }),
  z.strictObject({
    kind: z.literal('Failure'),
    request: z.string(),
    message: z.string(),
    model: z
      .strictObject({
        retryable: z.boolean(),
        status: z.int().exactOptional(),
        retryAfterMs: z.number().exactOptional(),
      })
      .exactOptional(),
  }),
  z.strictObject({
    kind: z.literal('Tool'),
    call: toolCallSchema,
    execution: z.strictObject({
      result: jsonObject,
      outcome: z.enum(['Ok', 'Error', 'TimedOut', 'SandboxLost']),
    }),
    spillCounter: count,
    definitions: z.array(definitionSchema).exactOptional(),
  }),
  z.strictObject({
    kind: z.literal('Checkpoint'),
    state: checkpointSchema,
    refused: z.string().exactOptional(),
  }),
  z.strictObject({ kind: z.literal('Aborted'), name: z.string(), message: z.string() }),
  z.strictObject({
    kind: z.literal('End'),
    result: z.strictObject({
      kind: endKindSchema,
      reason: stopRuleSchema,
      text: z.string(),
      detail: z.string().exactOptional(),
      modelStatus: z.int().exactOptional(),
      usage: usageSchema,
      costUsd: z.number().exactOptional(),
      iterations: count,
      toolCalls: count,
      contents: z.array(z.unknown()),
      transcript: z.array(transcriptEntrySchema),
      sequence: count,
    }),
  }),
]);

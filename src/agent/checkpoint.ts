import { z } from 'zod';
import { jsonBytes } from './json-bytes.ts';
import { transcriptEntrySchema } from './transcript.ts';

export const count = z.int().nonnegative();

export const usageSchema = z.strictObject({
  inputTokens: count,
  outputTokens: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
});

export const jsonObject = z.record(z.string(), z.unknown());

export const toolCallSchema = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    arguments: jsonObject.optional(),
    rawArguments: z.string(),
  })
  .transform((call) => ({ ...call, arguments: call.arguments }));

export const endKindSchema = z.enum(['Answered', 'Partial', 'NoAnswer', 'Failed', 'Cancelled']);

export const stopRuleSchema = z.enum([
  'answered',
  'iterationLimit',
  'contextLimit',
  'budget',
  'outputLimit',
  'noAnswer',
  'blocked',
  'modelError',
  'cancelled',
  'timeout',
  'checkpoint',
  'unexpected',
]);

export const checkpointSchema = z.strictObject({
  version: z.literal(1),
  /** Counts up from 1 within a run: the number in the object's key. */
  sequence: z.int().positive(),
  /** The contents can be read by this provider's adapter only. */
  provider: z.string(),
  model: z.string(),
  contents: z.array(z.unknown()),
  /** Model calls that were answered. */
  iteration: count,
  emptyAnswers: count,
  nudge: z.enum(['Empty', 'MalformedCall']).exactOptional(),
  usage: usageSchema,
  /** Of the last call; how many contents it had seen. */
  lastInputTokens: count,
  sentEntries: count,
  /** Absent when unknown. */
  costUsd: z.number().nonnegative().exactOptional(),
  toolCalls: count,
  /** A turn whose tool calls were not all answered. */
  pending: z
    .strictObject({
      calls: z.array(toolCallSchema),
      /** By position in `calls`. */
      results: z.array(z.strictObject({ index: count, result: jsonObject })),
    })
    .exactOptional(),
  /** Set when the loop had ended: resuming only returns it. */
  ending: z
    .strictObject({
      kind: endKindSchema,
      rule: stopRuleSchema,
      text: z.string(),
      detail: z.string().exactOptional(),
    })
    .exactOptional(),
  spillCounter: count,
  /** What the model said beside its calls; shown when there is no report. */
  interimText: z.string(),
  transcript: z.array(transcriptEntrySchema),
});

/** State of a running loop between two steps, JSON-serialisable. */
export type Checkpoint = z.output<typeof checkpointSchema>;

/** As it is stored: what was there at the checkpoint before is not written out again. */
export function checkpointBytes(state: Checkpoint): Uint8Array {
  return jsonBytes(state, ['contents', 'transcript']);
}

/** Throws with the place of the first fault: a checkpoint of another version or a damaged one is never guessed at. */
export function parseCheckpoint(value: unknown): Checkpoint {
  const parsed = checkpointSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue?.path.map(String).join('.') || '(top level)';
  throw new Error(
    `The checkpoint cannot be read: ${where}: ${issue?.message ?? 'unknown fault'}. Start the run anew.`,
  );
}

import { z } from 'zod';

/** One scalar to change. Only `to` is composed by the model; the rest is copied from the inventory it was shown. */
export const Edit = z.strictObject({
  path: z.string().describe('The file, copied from the inventory.'),
  key: z.string().describe('The dotted key of the scalar, copied from the inventory.'),
  from: z.string().describe('The value that the inventory shows now, copied.'),
  to: z.string().describe('The new value.'),
  rationale: z.string().describe('One sentence: why this value has to change with this bump.'),
});
export type Edit = z.infer<typeof Edit>;

/** Answer to the prompts triage and explain; every field is defined by who reads it. */
export const Verdict = z.strictObject({
  classification: z.enum(['mechanical', 'escalate', 'no_action']),
  summary: z.string().describe('The decision in one sentence; the line that is read first.'),
  reasoning: z
    .string()
    .describe(
      'What a person needs next: file and key to open, the choice that is theirs, the one fact in the way.',
    ),
  edits: z.array(Edit).max(64),
  escalationReason: z.string().describe('A few words for the commit status; empty unless escalate.'),
});
export type Verdict = z.infer<typeof Verdict>;

/** Answer to the prompts restructure and values: nothing in it could argue with the checks. */
export const Migration = z.strictObject({
  document: z.string().describe('The whole migrated YAML document: one document, no fences.'),
  notes: z.string().describe('One or two sentences on what moved.'),
});
export type Migration = z.infer<typeof Migration>;

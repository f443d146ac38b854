import { z } from 'zod';
import type { Usage } from './models/port.ts';

const count = z.int().nonnegative();
const common = {
  iteration: count,
  /** RFC 3339. */
  ts: z.string(),
};

export const transcriptEntrySchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('model_text'), ...common, text: z.string() }),
  z.strictObject({
    kind: z.literal('model_call'),
    ...common,
    usage: z.strictObject({
      inputTokens: count,
      outputTokens: count,
      cacheReadTokens: count,
      cacheWriteTokens: count,
    }),
    costUsd: z.number().exactOptional(),
    finishReason: z.string(),
  }),
  z.strictObject({
    kind: z.literal('tool_call'),
    ...common,
    id: z.string(),
    name: z.string(),
    args: z.string(),
  }),
  z.strictObject({
    kind: z.literal('tool_result'),
    ...common,
    id: z.string(),
    name: z.string(),
    result: z.string(),
    ok: z.boolean(),
  }),
  z.strictObject({ kind: z.literal('warning'), ...common, text: z.string() }),
  z.strictObject({ kind: z.literal('error'), ...common, text: z.string() }),
]);

/** What happened, in order: for people, never for resuming. JSON-serialisable. */
export type TranscriptEntry = z.output<typeof transcriptEntrySchema>;

export interface TranscriptHeader {
  readonly title: string;
  /** Shown as a list: model, session, merge request. */
  readonly facts: Readonly<Record<string, string>>;
  readonly request?: string;
}

export interface RenderOptions {
  /** Longest tool argument or result that is shown in full, in characters. */
  readonly maxFieldChars?: number;
  /** Longest whole text in characters; what does not fit is left out from the middle, and said. */
  readonly maxChars?: number;
}

/** `transcript.md`: who said what; tool results folded, with their sizes; tokens and cost per iteration. */
export function renderMarkdown(
  header: TranscriptHeader,
  entries: readonly TranscriptEntry[],
  { maxFieldChars = 4_000, maxChars = 1_000_000 }: RenderOptions = {},
): string {
  const blocks = [renderHeader(header)];
  let iteration = 0;
  for (const entry of entries) {
    if (entry.iteration !== iteration) {
      iteration = entry.iteration;
      blocks.push(`## Iteration ${iteration}`);
    }
    blocks.push(renderEntry(entry, maxFieldChars));
  }
  return `${withinSize(blocks, maxChars)}\n`;
}

function renderHeader({ title, facts, request }: TranscriptHeader): string {
  const lines = [`# ${title}`, '', ...Object.entries(facts).map(([name, value]) => `- ${name}: ${value}`)];
  if (request !== undefined) lines.push('', '**Request**', '', fence(request, ''));
  return lines.join('\n');
}

function renderEntry(entry: TranscriptEntry, maxFieldChars: number): string {
  switch (entry.kind) {
    case 'model_text':
      return `**Model**\n\n${entry.text}`;
    case 'model_call':
      return `_${tokens(entry.usage)}${entry.costUsd === undefined ? '' : `, $${entry.costUsd.toFixed(4)}`}, ended by ${entry.finishReason}_`;
    case 'tool_call':
      return `**Call** \`${entry.name}\`\n\n${fence(shorten(entry.args, maxFieldChars), 'json')}`;
    case 'tool_result':
      return [
        `<details><summary>${entry.ok ? 'Result' : 'Error'} of ${entry.name}, ${Buffer.byteLength(entry.result)} bytes</summary>`,
        fence(shorten(entry.result, maxFieldChars), 'json'),
        '</details>',
      ].join('\n\n');
    case 'warning':
      return `> Told to the model: ${entry.text.replaceAll('\n', '\n> ')}`;
    case 'error':
      return `> **Error:** ${entry.text.replaceAll('\n', '\n> ')}`;
    default:
      return entry satisfies never;
  }
}

function tokens(usage: Usage): string {
  const cached = usage.cacheReadTokens > 0 ? ` (${usage.cacheReadTokens} cached)` : '';
  return `${usage.inputTokens} tokens in${cached}, ${usage.outputTokens} out`;
}

/** A fence longer than any run of backticks inside, so that a result cannot close it. */
function fence(text: string, language: string): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), ([run]) => run.length));
  const ticks = '`'.repeat(longest + 1);
  return `${ticks}${language}\n${text}\n${ticks}`;
}

function shorten(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  // toWellFormed: a cut must not leave half of a surrogate pair.
  return `${text.slice(0, maxChars).toWellFormed()}\n… ${text.length - maxChars} more characters`;
}

/** Whole blocks only, so that no fence stays open; the first and the newest blocks matter most. */
function withinSize(blocks: readonly string[], maxChars: number): string {
  const whole = blocks.join('\n\n');
  if (whole.length <= maxChars) return whole;
  const [first = '', ...rest] = blocks;
  const kept: string[] = [];
  let room = maxChars - Math.min(first.length, maxChars) - 60;
  while (rest.length > 0) {
    const block = rest[rest.length - 1] ?? '';
    if (block.length + 2 > room) break;
    room -= block.length + 2;
    kept.unshift(block);
    rest.pop();
  }
  return [shorten(first, maxChars), `_… ${rest.length} entries left out_`, ...kept].join('\n\n');
}

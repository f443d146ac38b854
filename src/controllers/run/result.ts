import { createHash } from 'node:crypto';
import { z } from 'zod';
import { RUN_REASONS } from '../../crds/reasons.ts';
import type { ObjectStore, StoredObject } from '../../store/port.ts';
import type { StepContext } from './step.ts';

const Result = z.object({
  version: z.literal(1),
  reason: z.enum(RUN_REASONS),
  message: z.string(),
  /** Markdown for the note. */
  text: z.string(),
  /** Whether the text is a report of the model; else it says why there is none. */
  reported: z.boolean(),
  /** Markdown, cut to fit below the answer. */
  transcriptExcerpt: z.string(),
});

/** How a loop ended. Stored once per run under a fixed key, so that every later step tells the same end. */
export type RunResult = Readonly<z.infer<typeof Result>>;

export interface CheckpointRef {
  readonly sequence: number;
  readonly key: string;
}

export interface LoopProgress {
  /** Where a killed operator goes on; deliveries have none. */
  readonly checkpoint?: CheckpointRef;
  readonly iterations: number;
  readonly toolCalls: number;
  readonly usage: {
    readonly input: number;
    readonly output: number;
    readonly cacheRead: number;
    readonly cacheWrite: number;
  };
  readonly costUSD: string | undefined;
}

export const runPrefix = (runUid: string): string => `runs/${runUid}`;

/** US dollars with six places at the most: a cached call can cost less than a hundredth of a cent. */
export const money = (usd: number): string => usd.toFixed(6).replace(/\.?0+$/, '');

const resultKey = (runUid: string): string => `${runPrefix(runUid)}/result.json`;

/** Stores the end of the loop; the first one stored wins, and is what is returned. */
export async function keepResult(
  store: ObjectStore,
  runUid: string,
  result: RunResult,
): Promise<{
  readonly result: RunResult;
  readonly key: string;
  readonly sha256: string;
  readonly bytes: number;
}> {
  const key = resultKey(runUid);
  const body = Buffer.from(JSON.stringify(result));
  const put = await store.put(key, body, { ifNoneMatch: true, contentType: 'application/json' });
  const kept = put.kind === 'Stored' ? { result, body } : await load(store, key);
  if (kept === undefined) throw new Error(`${store.location}${key}: was there a moment ago and is gone`);
  return {
    result: kept.result,
    key,
    sha256: createHash('sha256').update(kept.body).digest('hex'),
    bytes: kept.body.byteLength,
  };
}

/** The run's result: this process's own, else the stored one; undefined when the loop never gave one. */
export async function readResult({ local, run, deps }: StepContext): Promise<RunResult | undefined> {
  const uid = run.metadata.uid ?? '';
  const own = local.executions.get(uid)?.result;
  if (own !== undefined) return own;
  const key = run.status?.outcome?.key;
  if (key === undefined) return undefined;
  return (await load(deps.store, key))?.result;
}

async function load(
  store: ObjectStore,
  key: string,
): Promise<{ result: RunResult; body: Buffer } | undefined> {
  const stored = await store.get(key);
  if (stored === undefined) return undefined;
  const body = await bytesOf(stored);
  return { result: Result.parse(JSON.parse(body.toString('utf8'))), body };
}

/** Whole in memory: for results and conversations, which the context limit bounds. */
export async function bytesOf({ body }: StoredObject): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

import { type Checkpoint, parseCheckpoint } from './checkpoint.ts';
import { type Clock, systemClock } from './clock.ts';
import { listBytes } from './json-bytes.ts';
import {
  ASSUMED_OUTPUT_TOKENS,
  BYTES_PER_TOKEN,
  type Limits,
  MODEL_RETRY,
  type RetryPolicy,
} from './limits.ts';
import type { LoopSink } from './loop-events.ts';
import type { Contents, Model } from './models/port.ts';
import { callCostUsd, listPrices, type ModelPrice } from './pricing.ts';
import { type Redact, redactNothing } from './redaction.ts';
import type { Outlook } from './stop-rules.ts';
import type { ToolRegistry } from './tools/registry.ts';
import type { TranscriptEntry } from './transcript.ts';
import { NO_USAGE } from './usage.ts';

export interface LoopOptions {
  readonly model: Model;
  readonly system: string;
  /** What the model begins with: a new request, or an earlier conversation and the reply. Ignored on `resume`. */
  readonly contents: Contents;
  readonly tools: ToolRegistry;
  readonly limits: Limits;
  /** A reason named `TimeoutError` ends the loop with `timeout`, any other with `cancelled`. */
  readonly signal: AbortSignal;
  readonly clock?: Clock;
  readonly retry?: RetryPolicy;
  /** Default: the list prices of the day the loop starts. */
  readonly prices?: readonly ModelPrice[];
  readonly sink?: LoopSink;
  /** Removes the process's secrets from tool results and texts before they are kept or sent. */
  readonly redact?: Redact;
  /**
   * Awaited after every answer that asks for tools, between the groups of its calls, after every iteration and
   * at the end. So a loop that is killed and resumed repeats at most the model call, or the group of tool calls,
   * that was under way: one command, or reads that ran side by side. A rejection ends the loop (another holder
   * has written this sequence, say); a store that is merely down is the caller's to swallow.
   */
  readonly checkpoint?: (state: Checkpoint) => Promise<void>;
  /** The newest checkpoint of this run, as JSON gave it back. */
  readonly resume?: unknown;
  /** Told to the model with the first call only, e.g. that its sandbox is a new one after a restart. */
  readonly notice?: string;
}

/**
 * The checkpoint's fields, while the loop changes them. What a checkpoint leaves out is undefined here: an object that
 * fields are deleted from is slow ever after.
 */
export type State = {
  -readonly [Key in keyof Required<Checkpoint>]: Checkpoint extends Record<Key, unknown>
    ? Checkpoint[Key]
    : Checkpoint[Key] | undefined;
};

/** Everything one loop works with. */
export interface Run {
  readonly state: State;
  readonly model: Model;
  readonly system: string;
  readonly tools: ToolRegistry;
  readonly limits: Limits;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly retry: RetryPolicy;
  readonly prices: readonly ModelPrice[];
  readonly redact: Redact;
  readonly emit: LoopSink;
  readonly checkpoint: (state: Checkpoint) => Promise<void>;
  notice: string | undefined;
}

export function startRun(options: LoopOptions): Run {
  const { model, limits, clock = systemClock } = options;
  const prices = options.prices ?? listPrices(clock.now());
  const state =
    options.resume === undefined ? newState(options, prices) : resumedState(model, options.resume);
  const emit = guarded(options.sink);
  if (limits.budgetUsd !== undefined && state.costUsd === undefined) {
    emit({
      type: 'Warning',
      message: `No price is known for the model ${model.name}: its budget cannot be enforced.`,
    });
  }
  return {
    state,
    model,
    system: options.system,
    tools: options.tools,
    limits,
    signal: options.signal,
    clock,
    retry: options.retry ?? MODEL_RETRY,
    prices,
    redact: options.redact ?? redactNothing,
    emit,
    checkpoint: options.checkpoint ?? (async () => undefined),
    notice: options.notice,
  };
}

function newState({ model, contents, tools }: LoopOptions, prices: readonly ModelPrice[]): State {
  const priced = callCostUsd(model.name, NO_USAGE, prices);
  return {
    ...ABSENT,
    version: 1,
    sequence: 0,
    provider: model.provider,
    model: model.name,
    contents: [...contents],
    iteration: 0,
    emptyAnswers: 0,
    usage: NO_USAGE,
    lastInputTokens: 0,
    sentEntries: 0,
    costUsd: priced,
    toolCalls: 0,
    spillCounter: tools.spillCounter.last,
    interimText: '',
    transcript: [],
  };
}

function resumedState(model: Model, value: unknown): State {
  const state = parseCheckpoint(value);
  if (state.provider !== model.provider) {
    throw new Error(
      `The checkpoint holds a conversation with ${state.provider}, the run's model is of ${model.provider}: resume with the model it began with (${state.model}).`,
    );
  }
  return { ...ABSENT, ...state };
}

const ABSENT = { nudge: undefined, costUsd: undefined, pending: undefined, ending: undefined };

export function outlookOf({ state, limits, model, prices, system, tools }: Run): Outlook {
  const unseenBytes = listBytes(state.contents.slice(state.sentEntries));
  const overheadBytes =
    state.lastInputTokens > 0
      ? 0
      : Buffer.byteLength(system) + Buffer.byteLength(JSON.stringify(tools.definitions()));
  const inputTokens = state.lastInputTokens + Math.ceil((unseenBytes + overheadBytes) / BYTES_PER_TOKEN);
  const estimate = { ...NO_USAGE, inputTokens, outputTokens: ASSUMED_OUTPUT_TOKENS };
  const nextCallUsd = callCostUsd(model.name, estimate, prices);
  const money =
    state.costUsd === undefined || nextCallUsd === undefined
      ? undefined
      : { spentUsd: state.costUsd, nextCallUsd };
  return { limits, iteration: state.iteration + 1, lastInputTokens: state.lastInputTokens, money };
}

export class CheckpointFailure extends Error {}

export async function save(run: Run): Promise<void> {
  const { state } = run;
  run.signal.throwIfAborted();
  state.sequence += 1;
  state.spillCounter = run.tools.spillCounter.last;
  try {
    await run.checkpoint(snapshot(state));
  } catch (error) {
    state.sequence -= 1;
    throw new CheckpointFailure(messageOf(error), { cause: error });
  }
  run.emit({ type: 'Checkpointed', iteration: state.iteration, sequence: state.sequence });
}

/**
 * The state as it is now. Entries are only ever added or replaced, never changed, so the lists are copied and their
 * entries shared: a deep copy of a long conversation after every step is what a loop would spend its time on.
 */
function snapshot({ nudge, costUsd, pending, ending, contents, transcript, ...always }: State): Checkpoint {
  return {
    ...always,
    contents: [...contents],
    transcript: [...transcript],
    ...(nudge && { nudge }),
    ...(costUsd !== undefined && { costUsd }),
    ...(ending && { ending }),
    ...(pending && { pending: { calls: [...pending.calls], results: [...pending.results] } }),
  };
}

type DistributiveOmit<T, Keys extends PropertyKey> = T extends unknown ? Omit<T, Keys> : never;

/** Adds to the transcript, with the process's secrets removed. */
export function note(
  { state, clock, redact }: Run,
  entry: DistributiveOmit<TranscriptEntry, 'iteration' | 'ts'>,
  iteration = state.iteration,
): void {
  const ts = new Date(clock.now()).toISOString();
  state.transcript.push(redactedEntry({ ...entry, iteration, ts }, redact));
}

function redactedEntry(entry: TranscriptEntry, redact: Redact): TranscriptEntry {
  switch (entry.kind) {
    case 'model_call':
      return entry;
    case 'tool_call':
      return { ...entry, args: redact(entry.args) };
    case 'tool_result':
      return { ...entry, result: redact(entry.result) };
    default:
      return { ...entry, text: redact(entry.text) };
  }
}

function guarded(sink: LoopSink | undefined): LoopSink {
  return (event) => {
    try {
      sink?.(event);
    } catch {
      // See LoopSink.
    }
  };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

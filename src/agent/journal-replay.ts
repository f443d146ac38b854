import type { Checkpoint } from './checkpoint.ts';
import type { Clock } from './clock.ts';
import { type JournalEntry, requestDigest } from './journal.ts';
import { type LoopResult, runLoop } from './loop.ts';
import { type Model, ModelError, type ToolCall } from './models/port.ts';
import { redactNothing } from './redaction.ts';
import type { ToolRegistry } from './tools/registry.ts';

export interface Replay {
  readonly result: LoopResult;
  /** How the recorded loop ended. */
  readonly recorded: LoopResult;
  readonly checkpoints: readonly Checkpoint[];
  /** Answers and tool results of the recorded loop, from the start of the replay on, that were not asked for. */
  readonly unused: readonly JournalEntry[];
}

export interface ReplayOptions {
  /** Reads and makes the contents of the journal's provider; is never asked to generate. */
  readonly adapter: Model;
  /** The loop was killed when this many checkpoints had been stored, and goes on from the last one. Default 0. */
  readonly afterCheckpoints?: number;
}

/**
 * Runs a recorded loop again with the journal's answers. A question that the recorded loop did not ask ends the
 * replay as an unexpected failure that names it. Throws for a journal without beginning or end.
 */
export async function replayLoop(
  journal: readonly JournalEntry[],
  { adapter, afterCheckpoints = 0 }: ReplayOptions,
): Promise<Replay> {
  const begin = journal.find((entry) => entry.kind === 'Begin');
  const end = journal.find((entry) => entry.kind === 'End');
  if (!begin || !end)
    throw new Error('The journal is not of a whole loop: its beginning or its end is missing.');
  const stored = journal.filter((entry) => entry.kind === 'Checkpoint' && entry.refused === undefined);
  const last = stored[afterCheckpoints - 1];
  if (afterCheckpoints > stored.length) {
    throw new Error(`The journal has ${stored.length} stored checkpoints, not ${afterCheckpoints}.`);
  }
  const { system, contents, limits, prices, retry, notice } = begin;
  const resume = last?.kind === 'Checkpoint' ? last.state : begin.resume;
  const source = new Source(journal, last === undefined ? 0 : journal.indexOf(last) + 1);
  const checkpoints: Checkpoint[] = [];
  const result = await runLoop({
    model: replayedModel(adapter, begin.model, source),
    tools: replayedTools(begin, source),
    ...{ system, contents, limits, clock: clockOf(end.result) },
    ...(prices !== undefined && { prices }),
    ...(retry !== undefined && { retry }),
    // Told with the first call, which a resumed loop has behind it.
    ...(notice !== undefined && last === undefined && { notice }),
    ...(resume !== undefined && { resume }),
    signal: source.signal,
    checkpoint: async (state) => {
      checkpoints.push(state);
      source.checkpointed(state);
    },
  });
  return { result, recorded: end.result, checkpoints, unused: source.unused() };
}

/** Time stands still: waits are over at once. */
function clockOf({ transcript }: LoopResult): Clock {
  const at = Date.parse(transcript[0]?.ts ?? '1970-01-01T00:00:00Z');
  return { now: () => at, sleep: async (_milliseconds, signal) => signal?.throwIfAborted() };
}

/** The journal's answers, each given once, to whoever asks the same question. */
class Source {
  readonly #journal: readonly JournalEntry[];
  readonly #from: number;
  readonly #used = new Set<JournalEntry>();
  readonly #abort = new AbortController();

  constructor(journal: readonly JournalEntry[], from: number) {
    this.#journal = journal;
    this.#from = from;
    this.#abortBefore(from);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Entries before the start of the replay. */
  passed(): readonly JournalEntry[] {
    return this.#journal.slice(0, this.#from);
  }

  take<Kind extends JournalEntry['kind']>(
    kinds: readonly Kind[],
    matches: (entry: Extract<JournalEntry, { kind: Kind }>) => boolean,
  ): Extract<JournalEntry, { kind: Kind }> | undefined {
    const isOne = (entry: JournalEntry): entry is Extract<JournalEntry, { kind: Kind }> =>
      kinds.some((kind) => kind === entry.kind);
    for (const entry of this.#journal.slice(this.#from)) {
      if (this.#used.has(entry) || !isOne(entry) || !matches(entry)) continue;
      this.#used.add(entry);
      return entry;
    }
    return undefined;
  }

  /** For a question without an answer: the recorded loop was stopped while it waited, or never asked. */
  unanswered(question: string): Promise<never> {
    const aborted = this.#journal.find((entry) => entry.kind === 'Aborted');
    if (!aborted) throw new Error(`The recorded loop did not ask this: ${question}`);
    this.#abort.abort(reasonOf(aborted));
    return new Promise(() => undefined);
  }

  checkpointed({ sequence }: Checkpoint): void {
    const same = this.#journal.findIndex(
      (entry) => entry.kind === 'Checkpoint' && entry.state.sequence === sequence,
    );
    const entry = this.#journal[same];
    if (entry?.kind !== 'Checkpoint') return;
    if (entry.refused !== undefined) throw new Error(entry.refused);
    this.#abortBefore(same + 1);
  }

  unused(): readonly JournalEntry[] {
    return this.#journal
      .slice(this.#from)
      .filter((entry) => ['Answer', 'Failure', 'Tool'].includes(entry.kind) && !this.#used.has(entry));
  }

  #abortBefore(index: number): void {
    const next = this.#journal[index];
    if (next?.kind === 'Aborted') this.#abort.abort(reasonOf(next));
  }
}

function reasonOf({ name, message }: { readonly name: string; readonly message: string }): Error {
  return Object.assign(new Error(message), { name });
}

function replayedModel(adapter: Model, name: string, source: Source): Model {
  return {
    name,
    provider: adapter.provider,
    makeUserContent: (text) => adapter.makeUserContent(text),
    makeToolResponses: (results) => adapter.makeToolResponses(results),
    toCanonical: (contents) => adapter.toCanonical(contents),
    fromCanonical: (messages) => adapter.fromCanonical(messages),
    async generate(request) {
      const digest = requestDigest(request, redactNothing);
      const found = source.take(['Answer', 'Failure'], (entry) => entry.request === digest);
      if (!found) {
        const { contents, tools, ephemeral = 'none' } = request;
        return source.unanswered(
          `a model request of ${contents.length} entries with ${tools.length} tools, ephemeral: ${ephemeral}`,
        );
      }
      if (found.kind === 'Answer') return found.answer;
      throw found.model ? new ModelError(found.message, found.model) : new Error(found.message);
    },
  };
}

type Beginning = Extract<JournalEntry, { kind: 'Begin' }>;

function replayedTools(begin: Beginning, source: Source): ToolRegistry {
  let { definitions, spillCounter: last } = begin;
  for (const entry of source.passed()) {
    if (entry.kind !== 'Tool') continue;
    definitions = entry.definitions ?? definitions;
    last = entry.spillCounter;
  }
  return {
    definitions: () => definitions,
    notes: () => '',
    mayRunBeside: ({ name }) => begin.concurrent.includes(name),
    spillCounter: {
      get last() {
        return last;
      },
      next: () => ++last,
      giveBack: () => undefined,
    },
    sandbox: undefined,
    async execute(call) {
      const found = source.take(['Tool'], (entry) => isSame(entry.call, call));
      if (!found) return source.unanswered(`tool ${call.name} with ${call.rawArguments}`);
      definitions = found.definitions ?? definitions;
      // Calls side by side are answered in another order than they were recorded in.
      last = begin.concurrent.includes(call.name) ? Math.max(last, found.spillCounter) : found.spillCounter;
      return found.execution;
    },
  };
}

function isSame(one: ToolCall, other: ToolCall): boolean {
  return one.id === other.id && one.name === other.name && one.rawArguments === other.rawArguments;
}

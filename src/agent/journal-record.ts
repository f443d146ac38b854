import type { JournalEntry, JournalFailure } from './journal.ts';
import { requestDigest } from './journal.ts';
import { type LoopOptions, type LoopResult, runLoop } from './loop.ts';
import { messageOf } from './loop-run.ts';
import { type Model, ModelError } from './models/port.ts';
import { type Redact, redactNothing, redactObject } from './redaction.ts';
import type { ToolRegistry } from './tools/registry.ts';

/**
 * Runs the loop as `runLoop` does and hands over its journal, entry by entry, as it comes about. A journal without
 * an `End` is one of a loop that was killed, or that threw.
 */
export async function recordLoop(
  options: LoopOptions,
  write: (entry: JournalEntry) => void,
): Promise<LoopResult> {
  const { signal, redact = redactNothing } = options;
  let stopped = false;
  /** What comes in after the end was not seen by the loop. */
  const keep = (entry: JournalEntry): void => {
    // Redacting strings leaves the entry's shape as it is.
    if (!stopped) write(redactObject(entry, redact) as JournalEntry);
  };
  const onAbort = (): void => {
    const { reason } = signal;
    keep({
      kind: 'Aborted',
      name: reason instanceof Error ? reason.name : 'Error',
      message: messageOf(reason),
    });
    stopped = true;
  };

  keep(beginningOf(options));
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  try {
    const result = await runLoop({
      ...options,
      model: recordedModel(options.model, redact, keep),
      tools: recordedTools(options.tools, keep),
      checkpoint: recordedCheckpoint(options.checkpoint, keep),
    });
    stopped = false;
    keep({ kind: 'End', result });
    return result;
  } finally {
    stopped = true;
    signal.removeEventListener('abort', onAbort);
  }
}

type Keep = (entry: JournalEntry) => void;

function beginningOf(options: LoopOptions): JournalEntry {
  const { model, tools, system, contents, limits, prices, retry, notice, resume } = options;
  const definitions = tools.definitions();
  const mayRunBeside = ({ name }: { readonly name: string }): boolean =>
    tools.mayRunBeside({ id: '', name, arguments: {}, rawArguments: '{}' });
  return {
    kind: 'Begin',
    version: 1,
    provider: model.provider,
    model: model.name,
    ...{ system, contents, limits },
    ...(prices !== undefined && { prices }),
    ...(retry !== undefined && { retry }),
    ...(notice !== undefined && { notice }),
    ...(resume !== undefined && { resume }),
    definitions,
    concurrent: definitions.filter(mayRunBeside).map(({ name }) => name),
    spillCounter: tools.spillCounter.last,
  };
}

function recordedModel(model: Model, redact: Redact, keep: Keep): Model {
  return {
    name: model.name,
    provider: model.provider,
    makeUserContent: (text) => model.makeUserContent(text),
    makeToolResponses: (results) => model.makeToolResponses(results),
    toCanonical: (contents) => model.toCanonical(contents),
    fromCanonical: (messages) => model.fromCanonical(messages),
    async generate(request) {
      const digest = requestDigest(request, redact);
      try {
        const answer = await model.generate(request);
        keep({ kind: 'Answer', request: digest, answer });
        return answer;
      } catch (error) {
        keep({ kind: 'Failure', request: digest, ...failureOf(error) });
        throw error;
      }
    },
  };
}

function failureOf(error: unknown): JournalFailure {
  const message = messageOf(error);
  if (!(error instanceof ModelError)) return { message };
  const { retryable, status, retryAfterMs } = error;
  return {
    message,
    model: {
      retryable,
      ...(status !== undefined && { status }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    },
  };
}

function recordedTools(tools: ToolRegistry, keep: Keep): ToolRegistry {
  let known = JSON.stringify(tools.definitions());
  return {
    definitions: () => tools.definitions(),
    notes: () => tools.notes(),
    mayRunBeside: (call) => tools.mayRunBeside(call),
    spillCounter: tools.spillCounter,
    get sandbox() {
      return tools.sandbox;
    },
    async execute(call, context) {
      const execution = await tools.execute(call, context);
      const definitions = tools.definitions();
      const now = JSON.stringify(definitions);
      const changed = now !== known;
      known = now;
      const spillCounter = tools.spillCounter.last;
      keep({ kind: 'Tool', call, execution, spillCounter, ...(changed && { definitions }) });
      return execution;
    },
  };
}

function recordedCheckpoint(checkpoint: LoopOptions['checkpoint'], keep: Keep) {
  return async (state: Parameters<NonNullable<LoopOptions['checkpoint']>>[0]): Promise<void> => {
    try {
      await checkpoint?.(state);
    } catch (error) {
      keep({ kind: 'Checkpoint', state, refused: messageOf(error) });
      throw error;
    }
    keep({ kind: 'Checkpoint', state });
  };
}

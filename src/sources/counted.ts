import type { Tool, ToolOutput } from '../agent/tools/port.ts';
import type { CallOutcome, SourceMetrics } from './metrics.ts';

/** The tool, each of whose calls is counted once: a stream at its end, a call that was cancelled not at all. */
export function counted(tool: Tool, metrics: SourceMetrics): Tool {
  const called = (outcome: CallOutcome): void => metrics.called(tool.definition.name, outcome);
  return {
    ...tool,
    async run(args, context) {
      let output: ToolOutput;
      try {
        output = await tool.run(args, context);
      } catch (error) {
        if (!context.signal.aborted) called('Error');
        throw error;
      }
      if (output.kind === 'Stream') return { ...output, chunks: toItsEnd(output, called, context.signal) };
      called(output.kind === 'Error' ? 'Error' : 'Ok');
      return output;
    },
  };
}

type Stream = Extract<ToolOutput, { kind: 'Stream' }>;

async function* toItsEnd(
  { chunks, incomplete }: Stream,
  called: (outcome: CallOutcome) => void,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  // Whoever wants a preview only stops reading, and has what it wants.
  let outcome: CallOutcome | undefined = 'Ok';
  try {
    yield* chunks;
    if (incomplete?.() !== undefined) outcome = 'Partial';
  } catch (error) {
    outcome = signal.aborted ? undefined : 'Partial';
    throw error;
  } finally {
    if (outcome !== undefined) called(outcome);
  }
}
